"""Limits of connections: how many there may be, how long each may wait, and which is closed for a new one.

uvicorn limits neither the time for a header nor the number of connections. Both are added here, in the class that
receives the bytes: a half-open connection costs a descriptor and no more, and is the first to be closed for a new one.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from ptad.service.error_messages import short_traceback
from ptad.service.logs import SparseLog
from ptad.service.problems import MEDIA_TYPE, problem_bytes
from ptad.service.process_limits import RESERVED_FILES, available_connections
from ptad.service.settings import Limits

logger = logging.getLogger("ptad.service.connections")
logger.addFilter(SparseLog())

ACCEPT_PAUSE = 1.0  # seconds for which asyncio stops accepting when it has found no descriptor
SLOW_AFTER = 2.0  # seconds after which the speed of a body is checked
_NO_DESCRIPTOR = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Connections:
    """The open connections of a service, by the limits that are in force; ``clock`` returns seconds."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits, self.clock = limits, clock
        self.most = min(limits.connections, available_connections())
        self._open: dict[Connection, None] = {}
        self._by_address: Counter[str] = Counter()
        self._last_relief = -ACCEPT_PAUSE  # when connections were last closed for want of descriptors

    def __len__(self) -> int:
        return len(self._open)

    def admit(self, new: Connection) -> bool:
        """Register a connection, if need be in place of a waiting one; return whether there was room."""
        crowded = self._by_address[new.address] >= self.limits.connections_per_address
        if crowded or len(self._open) >= self.most:
            idle = self._most_idle(new.address if crowded else None)
            if idle is None:
                logger.warning("all %d connections are in use: a client was turned away", len(self._open))
                return False
            logger.warning("all %d connections are in use: one without a request was closed", len(self._open))
            self._close(idle)
        self._open[new] = None
        self._by_address[new.address] += 1
        return True

    def remove(self, connection: Connection) -> None:
        """Remove a connection that is closed."""
        if connection in self._open:
            del self._open[connection]
            self._by_address[connection.address] -= 1
            if not self._by_address[connection.address]:
                del self._by_address[connection.address]

    def sweep(self) -> None:
        """Close connections that have waited for too long; called twice a second."""
        now, limits = self.clock(), self.limits
        for connection in list(self._open):
            if connection.stuck_since is not None and now - connection.stuck_since > limits.stall_seconds:
                self._close(connection)  # the client does not read
            elif connection.is_late(now, limits.header_seconds):
                connection.time_out(limits.header_seconds)

    def on_loop_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Handle errors that no task has, such as a connection that could not be accepted."""
        error = context.get("exception")
        if isinstance(error, OSError) and error.errno in _NO_DESCRIPTOR:
            # asyncio reports each of many attempts to accept; once a second is enough
            if self.clock() - self._last_relief >= ACCEPT_PAUSE:
                self._last_relief = self.clock()
                for _ in range(RESERVED_FILES):
                    if (idle := self._most_idle()) is None:
                        break
                    self._close(idle)
                logger.warning("no descriptor was free for a new connection: waiting connections were closed")
        elif isinstance(error, ConnectionError | TimeoutError):
            logger.debug("a client disconnected: %s", type(error).__name__)
        elif error is not None:
            logger.error("unexpected %s", short_traceback(error))
        else:
            logger.error("unexpected: %s", context.get("message", "an error without a name"))

    def _most_idle(self, address: str | None = None) -> Connection | None:
        """Return the connection that has waited longest without a request, or else one whose body is too slow.

        Those that never had an answer come first: a client that keeps opening new ones loses its own. They are in the
        order in which they were opened, so that the first one is found at once.
        """
        candidates = [c for c in self._open if c.address == address] if address else self._open
        unanswered = next((c for c in candidates if c.is_waiting and not c.answered), None)
        if unanswered is not None:
            return unanswered
        waiting = [c for c in candidates if c.is_waiting]
        slow = [] if waiting else [c for c in candidates if c.is_slow(self.clock(), self.limits.body_speed)]
        return min(waiting or slow, key=lambda c: c.since, default=None)

    def _close(self, connection: Connection) -> None:
        self.remove(connection)
        connection.transport.abort()


class Connection(H11Protocol):
    """A connection that registers itself and keeps the times that limits depend on."""

    def __init__(self, registry: Connections, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.registry = registry
        self.address = ""
        self.since = 0.0  # when it began to wait for a request, or when its request began
        self.stuck_since: float | None = None  # since when the client has not read its answer
        self._header_since: float | None = None  # when the time for a header began
        self._received = 0  # bytes of the current request
        self._admitted = False
        self.answered = False  # whether any request was

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Register the connection, or refuse it."""
        peer = transport.get_extra_info("peername")
        self.address = str(peer[0]) if isinstance(peer, tuple) else "local"
        self.since = self._header_since = self.registry.clock()
        self.transport = transport
        self._admitted = self.registry.admit(self)
        if self._admitted:
            super().connection_made(transport)
        else:
            self.refuse(503, "Too many connections are open. Try again in a moment.")

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection from the registry."""
        self.registry.remove(self)
        if self._admitted:
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Handle bytes; the time until a header is complete is limited."""
        if self.transport.is_closing():
            return
        before = self.cycle
        if self.is_waiting and self._header_since is None:
            self._header_since = self.registry.clock()
        self._received += len(data)
        super().data_received(data)
        if self.cycle is not before:
            self.since, self._received = self.registry.clock(), len(data)
        if not self.is_waiting:
            self._header_since = None

    def on_response_complete(self) -> None:
        """Wait for the next request, which may have begun already, or for the rest of a body that is not read."""
        self.since, self._received, self.answered = self.registry.clock(), 0, True
        super().on_response_complete()
        n_bytes = len(self.conn.trailing_data[0])
        if self.is_waiting and (n_bytes or self.conn.their_state is h11.SEND_BODY):
            self._header_since, self._received = self.since, n_bytes

    def pause_writing(self) -> None:
        """Note that the client does not read."""
        self.stuck_since = self.registry.clock()
        super().pause_writing()

    def resume_writing(self) -> None:
        """Note that the client reads again."""
        self.stuck_since = None
        super().resume_writing()

    @property
    def is_waiting(self) -> bool:
        """Whether the connection waits for a request."""
        return self.cycle is None or self.cycle.response_complete

    def is_late(self, now: float, seconds: float) -> bool:
        """Return whether a header has not arrived in time."""
        if self.transport.is_closing():  # and what is left to send may be stuck
            self.stuck_since = now if self.stuck_since is None else self.stuck_since
            return False
        return self.is_waiting and self._header_since is not None and now - self._header_since > seconds

    def is_slow(self, now: float, speed: float) -> bool:
        """Return whether a body arrives below a speed in bytes per second."""
        age = now - self.since
        arriving = self.cycle is not None and self.cycle.more_body and not self.flow.read_paused
        return arriving and age > SLOW_AFTER and self._received < speed * age

    def time_out(self, seconds: float) -> None:
        """Close the connection; a client that has sent part of a header gets an answer."""
        if self._received and self.conn.their_state is not h11.SEND_BODY:
            self.refuse(408, f"The header of the request took longer than {seconds:g} s to arrive. Send it again.")
        else:
            self.transport.close()

    def refuse(self, status: int, detail: str) -> None:
        """Answer without the application, and close the connection."""
        body = problem_bytes(status, detail)
        head = f"HTTP/1.1 {status} Refused\r\nContent-Type: {MEDIA_TYPE}\r\nContent-Length: {len(body)}\r\n"
        self.transport.write(f"{head}Cache-Control: no-store\r\nConnection: close\r\n\r\n".encode() + body)
        self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are not HTTP."""
        self.refuse(400, "This is not an HTTP/1.1 request. Check the client, or whether it speaks TLS.")
