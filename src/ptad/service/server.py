"""Runs the service in this process until it is asked to stop."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
import sys
from functools import partial
from types import FrameType

import uvicorn
from fastapi import FastAPI

from ptad.errors import SettingError
from ptad.service.app import create_app
from ptad.service.connections import Connection, Connections
from ptad.service.logs import SparseLog
from ptad.service.settings import ServiceSettings

logger = logging.getLogger("ptad.service")

BACKLOG = 128  # connections that the system keeps until they are accepted
ACCEPTED = 8  # connections accepted at a time; between two times, open ones are served
REQUEST_GRACE = 30  # seconds for answers under way after SIGTERM


class Server(uvicorn.Server):
    """A server that starts no more jobs, and ends streams of events, as soon as it is asked to stop."""

    def __init__(self, config: uvicorn.Config, app: FastAPI, connections: Connections) -> None:
        super().__init__(config)
        self._service, self._connections = app, connections

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start; from here on the service logs errors that no task has."""
        asyncio.get_running_loop().set_exception_handler(self._connections.on_loop_error)
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(BACKLOG)  # asyncio has set it to the number of connections that it accepts at a time
        gc.collect()
        gc.freeze()  # all that exists now stays: a collection need not look through it

    async def on_tick(self, counter: int) -> bool:
        """Close connections that have waited for too long, twice a second."""
        if counter % 5 == 0:
            self._connections.sweep()
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handle SIGTERM or SIGINT."""
        context = self._service.state.context
        if context is not None and not context.jobs.stopping.is_set():
            logger.info("stopping: answers under way are finished, jobs end or stop at their checkpoint")
            context.jobs.stopping.set()
        # the parent would raise the signal again at the end, but a service that stopped as asked exits with code 0
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True
        self.should_exit = True


def run(settings: ServiceSettings) -> None:
    """Serve until a signal arrives."""
    for name in ("uvicorn.error", "asyncio"):  # clients can cause their lines at will
        logging.getLogger(name).addFilter(SparseLog())
    sys.setswitchinterval(0.001)  # the event loop is not held up by the thread of the batcher
    listener = listen(settings)
    try:
        app = create_app(settings)
    except BaseException:
        listener.close()
        raise
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    logger.info("http://%s:%d", host, listener.getsockname()[1])
    connections = Connections(settings.limits)
    config = uvicorn.Config(
        app,
        http=partial(Connection, connections),  # type: ignore[arg-type]
        ws="none",
        backlog=ACCEPTED,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=REQUEST_GRACE,
        lifespan="on",
        h11_max_incomplete_event_size=64 * 1024,
    )
    server = Server(config, app, connections)
    try:
        server.run(sockets=[listener])
    finally:
        listener.close()
    if not server.started:
        raise SettingError("The service could not start; the lines above say why.")


def listen(settings: ServiceSettings) -> socket.socket:
    """Return a socket that accepts connections."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # declared as TCP, so that asyncio sets TCP_NODELAY: else the body of an answer comes 40 ms after its header
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((settings.host.strip("[]"), settings.port))
        listener.listen(BACKLOG)
        return listener
    except OSError as error:
        listener.close()
        raise SettingError(
            f"The service cannot listen on {settings.host} port {settings.port}: {error.strerror or error}.",
            "Choose another with {host} and {port}.",
        ) from error
