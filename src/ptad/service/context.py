"""What the addresses share: one object per service, carried by the application."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from fastapi import Request

from ptad.service.batching import Batcher
from ptad.service.jobs.records import Jobs
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


def context_of(request: Request) -> Context:
    """The parts of the service that answers this request."""
    return cast(Context, request.app.state.context)
