"""The parts of a running service, and how routes get them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Request

from ptad.service.batching import Batcher
from ptad.service.jobs.queue import Jobs
from ptad.service.metrics import Metrics
from ptad.service.models import Models
from ptad.service.sandbox import Sandbox
from ptad.service.settings import ServiceSettings
from ptad.service.store import Store
from ptad.service.uploads import Uploads


@dataclass
class Context:
    """The parts of a running service."""

    settings: ServiceSettings
    store: Store
    metrics: Metrics
    models: Models
    uploads: Uploads
    jobs: Jobs
    batcher: Batcher
    sandbox: Sandbox


def get_context(request: Request) -> Context:
    """Return the parts of the service that answers a request."""
    return cast(Context, request.app.state.context)


async def _inject(request: Request) -> Context:  # FastAPI runs a dependency that is not async in a thread
    return get_context(request)


ServiceContext = Annotated[Context, Depends(_inject)]
