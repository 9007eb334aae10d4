"""Running the service in this process until it is told to stop."""

from __future__ import annotations

import logging
import signal
import socket
import sys
from types import FrameType

import uvicorn
from fastapi import FastAPI

from ptad.errors import SettingError
from ptad.service.app import create_app
from ptad.service.settings import ServiceSettings

logger = logging.getLogger("ptad.service")

REQUEST_GRACE = 30  # seconds for answers under way after SIGTERM


class Server(uvicorn.Server):
    """A server that tells its jobs and open event streams at once when it is asked to stop."""

    def __init__(self, config: uvicorn.Config, app: FastAPI) -> None:
        super().__init__(config)
        self._service = app

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take SIGTERM or SIGINT."""
        context = self._service.state.context
        if context is not None and not context.jobs.stopping.is_set():
            logger.info("stopping: answers under way are finished, jobs end or stop at their checkpoint")
            context.jobs.request_stop()
        # not the parent's way: it would raise the signal again in the end, and a service that was asked to stop and
        # did so leaves with code 0
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True
        self.should_exit = True


class _NoTracebacks(logging.Filter):
    """Tracebacks quote values; where an error came from is logged without them (see :mod:`ptad.service.traces`)."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.exc_info is None


def run(settings: ServiceSettings) -> None:
    """Serve until a signal comes."""
    logging.getLogger("uvicorn.error").addFilter(_NoTracebacks())
    sys.setswitchinterval(0.001)  # the event loop gets its turn sooner while the lane is at work
    listener = _listen(settings)
    try:
        app = create_app(settings)
    except BaseException:
        listener.close()
        raise
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    logger.info("http://%s:%d", host, listener.getsockname()[1])
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=REQUEST_GRACE,
        lifespan="on",
        h11_max_incomplete_event_size=64 * 1024,
    )
    server = Server(config, app)
    try:
        server.run(sockets=[listener])
    finally:
        listener.close()
    if not server.started:
        raise SettingError("The service could not start; the lines above say why.")


def _listen(settings: ServiceSettings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((settings.host.strip("[]"), settings.port))
        listener.listen(512)
        return listener
    except OSError as error:
        listener.close()
        raise SettingError(
            f"The service cannot listen on {settings.host} port {settings.port}: {error.strerror or error}. "
            "Choose another with --host and --port."
        ) from error
