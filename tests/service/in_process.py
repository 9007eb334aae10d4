"""A service inside the process of a test."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import httpx
from problem_words import check_problem

from ptad.service.app import create_app
from ptad.service.context import Context
from ptad.service.settings import Limits, ServiceSettings


def run_requests(
    tmp_path: Path,
    limits: Limits,
    requests: Callable[[httpx.AsyncClient, Context], Awaitable[Any]],
    models: Sequence[Path] = (),
    token: str | None = None,
) -> Any:
    """Run an async function that takes a client and the parts of the service."""
    app = create_app(ServiceSettings(tmp_path / "s", tuple(models), device="cpu", limits=limits, token=token))

    async def run() -> Any:
        async def look(answer: httpx.Response) -> None:
            await answer.aread()
            check_problem(answer, tmp_path / "s")

        transport, hooks = httpx.ASGITransport(app), {"response": [look]}
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://localhost", event_hooks=hooks) as client,
        ):
            return await requests(client, app.state.context)

    return asyncio.run(run())
