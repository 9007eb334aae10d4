"""The application: its parts, its routes, and the files of the page."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from importlib.resources import files as package_files
from importlib.util import find_spec
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from starlette.responses import RedirectResponse, Response

from ptad._version import __version__
from ptad.config import PRESETS
from ptad.report.scripts import STYLE, asset, scripts
from ptad.service.api_types import COMMON_PROBLEMS, ServiceInfo
from ptad.service.batching import Batcher
from ptad.service.context import Context, ServiceContext
from ptad.service.jobs.queue import Jobs
from ptad.service.metrics import Metrics
from ptad.service.models import Models
from ptad.service.problems import Problem, add_handlers
from ptad.service.routes import jobs, resources, results, scores
from ptad.service.sandbox import Sandbox
from ptad.service.security import Guard
from ptad.service.settings import ServiceSettings
from ptad.service.store import Store
from ptad.service.uploads import Uploads
from ptad.tables.column_types import TYPES

logger = logging.getLogger("ptad.service")
router = APIRouter(tags=["operation"])

PAGE_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript"}


def create_app(settings: ServiceSettings) -> FastAPI:
    """Return the service as an ASGI application; its parts exist from start-up to shutdown."""
    metrics = Metrics()
    store = Store(settings.store)
    try:
        models = Models(store, settings)  # a model that cannot be read is an error of whoever starts the service
    except BaseException:
        store.close()
        raise

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        try:
            sandbox = Sandbox(settings.limits)
            uploads = Uploads(store, settings.limits, sandbox)
            queue = Jobs(store, settings, models, uploads, metrics)
            batcher = Batcher(settings.limits.waiting_rows, metrics)
            app.state.context = Context(settings, store, metrics, models, uploads, queue, batcher, sandbox)
            queue.start_waiting()
            logger.info(
                "ready: %s, store %s",
                "1 model" if len(models.entries) == 1 else f"{len(models.entries):,} models",
                store.root,
            )
            yield
            await queue.stop()
            batcher.close()
            sandbox.close()
        finally:
            app.state.context = None
            store.close()

    app = FastAPI(
        title="ptad",
        version=__version__,
        summary="One-class anomaly detection for tables",
        lifespan=lifespan,
        docs_url=None,  # FastAPI's pages load scripts from other sites: the page of the service has its own
        redoc_url=None,
        responses=COMMON_PROBLEMS,
    )
    app.state.context = None
    app.add_middleware(Guard, settings=settings, metrics=metrics)
    add_handlers(app)
    for part in (scores, resources, jobs, results):
        app.include_router(part.router)
    app.include_router(router)
    _add_page(app)
    return app


@router.get("/health")
async def health() -> dict[str, str]:
    """Whether the process answers."""
    return {"status": "ok"}


@router.get("/ready")
async def ready(request: Request) -> dict[str, str]:
    """Whether the service takes work: not before it has started and not while it stops."""
    context: Context | None = request.app.state.context
    if context is None or context.jobs.stopping.is_set():
        raise Problem(503, "The service is starting or stopping. Try again in a moment.")
    return {"status": "ready"}


_TEXT: dict[int | str, dict[str, Any]] = {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}


@router.get("/metrics", response_class=Response, responses=_TEXT)
async def prometheus_metrics(context: ServiceContext) -> Response:
    """Metrics in the text format of Prometheus."""
    context.metrics.models.set(len(context.models.entries))
    return Response(context.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


@router.get("/v1/service", response_model=ServiceInfo)
async def service(context: ServiceContext) -> Any:
    """The version, the limits, the types that a column can have, and the presets that can be fitted."""
    return {
        "version": __version__,
        "limits": asdict(context.settings.limits),
        "types": list(TYPES),
        "presets": [name for name in PRESETS if name != "paper" or find_spec("torch") is not None],
    }


def _add_page(app: FastAPI) -> None:
    """Serve the files of the page from memory: no path of a request reaches the file system."""
    files = {name: asset(name).encode() for name in (STYLE, *scripts())}
    for file in package_files("ptad.service").joinpath("page").iterdir():
        if file.name.rpartition(".")[2] in PAGE_TYPES:
            files[file.name] = file.read_bytes()

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return await page_file("index.html")

    @app.get("/docs", include_in_schema=False)
    async def api_page() -> Response:
        return RedirectResponse("/#/api")

    @app.get("/page/{name:path}", include_in_schema=False)
    async def page_file(name: str) -> Response:
        if name not in files:
            raise Problem(404, "The page has no such file.")
        media_type = PAGE_TYPES[name.rpartition(".")[2]]
        return Response(files[name], headers={"cache-control": "no-cache"}, media_type=media_type)
