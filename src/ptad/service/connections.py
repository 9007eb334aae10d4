"""Connections: how many there may be, how long each may wait, and who has to go when they are used up.

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
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from ptad.service.logs import SparseLog
from ptad.service.problems import MEDIA_TYPE, problem_bytes
from ptad.service.reasons import traced
from ptad.service.settings import Limits

logger = logging.getLogger("ptad.service.connections")
logger.addFilter(SparseLog())

RESERVED_DESCRIPTORS = 64  # for files, workers and the readers of uploads
ACCEPT_PAUSE = 1.0  # seconds for which asyncio stops accepting when it has found no descriptor
SLOW_AFTER = 2.0  # seconds after which the speed of a body says something
_NO_DESCRIPTOR = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Connections:
    """The open connections of a service.

    Parameters
    ----------
    limits : Limits
        Numbers and times.
    clock : callable
        Seconds, for tests.
    """

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits, self.clock = limits, clock
        self.most = min(limits.connections, _spare_descriptors())
        self._open: dict[Connection, None] = {}
        self._by_address: Counter[str] = Counter()
        self._relieved = -ACCEPT_PAUSE

    def __len__(self) -> int:
        return len(self._open)

    def admit(self, new: Connection) -> bool:
        """Take a connection in, if need be for one that waits; return whether there was room."""
        crowded = self._by_address[new.address] >= self.limits.connections_per_address
        if crowded or len(self._open) >= self.most:
            out = self._dispensable(new.address if crowded else None)
            if out is None:
                logger.warning("all %d connections are in use: a client was turned away", len(self._open))
                return False
            logger.warning("all %d connections are in use: one without a request was closed", len(self._open))
            self._drop(out)
        self._open[new] = None
        self._by_address[new.address] += 1
        return True

    def forget(self, connection: Connection) -> None:
        """Count a connection no longer."""
        if connection in self._open:
            del self._open[connection]
            self._by_address[connection.address] -= 1
            if not self._by_address[connection.address]:
                del self._by_address[connection.address]

    def sweep(self) -> None:
        """Close what has waited for too long; called about once a second."""
        now, limits = self.clock(), self.limits
        for connection in list(self._open):
            if connection.stuck_since is not None and now - connection.stuck_since > limits.stall_seconds:
                self._drop(connection)  # the client takes nothing
            elif connection.is_late(now, limits.header_seconds):
                connection.time_out(limits.header_seconds)

    def on_loop_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Take errors that have no caller, such as a connection that could not be accepted."""
        error = context.get("exception")
        if isinstance(error, OSError) and error.errno in _NO_DESCRIPTOR:
            # asyncio reports every attempt on its list of waiting connections; one line and one relief are enough
            if self.clock() - self._relieved >= ACCEPT_PAUSE:
                self._relieved = self.clock()
                for _ in range(RESERVED_DESCRIPTORS):
                    if (out := self._dispensable()) is None:
                        break
                    self._drop(out)
                logger.warning("no descriptor was free for a new connection: waiting connections were closed")
        elif isinstance(error, ConnectionError | TimeoutError):
            logger.debug("a client is gone: %s", type(error).__name__)
        elif error is not None:
            logger.error("unexpected %s", traced(error))
        else:
            logger.error("unexpected: %s", context.get("message", "an error without a name"))

    def _dispensable(self, address: str | None = None) -> Connection | None:
        """The connection that has waited longest without a request, or else one whose body hardly arrives.

        Those that never had an answer go first: whoever opens ever new ones is the first to lose them. They stand in
        the order in which they came, so that this one is found at once.
        """
        candidates = [c for c in self._open if c.address == address] if address else self._open
        new = next((c for c in candidates if c.is_waiting and not c.answered), None)
        if new is not None:
            return new
        waiting = [c for c in candidates if c.is_waiting]
        slow = [] if waiting else [c for c in candidates if c.is_slow(self.clock(), self.limits.body_speed)]
        return min(waiting or slow, key=lambda c: c.since, default=None)

    def _drop(self, connection: Connection) -> None:
        self.forget(connection)
        connection.transport.abort()


class Connection(H11Protocol):
    """A connection that is counted, and that knows what it waits for."""

    registry: ClassVar[Connections]

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.address = ""
        self.since = 0.0  # when it began to wait, or when its request began
        self.stuck_since: float | None = None  # the client takes nothing of an answer
        self._late_from: float | None = None  # from when on the time for a header counts
        self._received = 0  # bytes of the request under way
        self._counted = False
        self.answered = False  # whether a request of it ever was

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, or turn the client away."""
        peer = transport.get_extra_info("peername")
        self.address = str(peer[0]) if isinstance(peer, tuple) else "local"
        self.since = self._late_from = self.registry.clock()
        self.transport = transport
        self._counted = self.registry.admit(self)
        if self._counted:
            super().connection_made(transport)
        else:
            self.refuse(503, "Too many connections are open. Try again in a moment.")

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self.registry.forget(self)
        if self._counted:
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes; those before the end of a header are timed."""
        if self.transport.is_closing():
            return
        before = self.cycle
        if self.is_waiting and self._late_from is None:
            self._late_from = self.registry.clock()
        self._received += len(data)
        super().data_received(data)
        if self.cycle is not before:
            self.since, self._received = self.registry.clock(), len(data)
        if not self.is_waiting:
            self._late_from = None

    def on_response_complete(self) -> None:
        """Wait for the next request, of which something may be there, or for the rest of a body that nobody wants."""
        self.since, self._received, self.answered = self.registry.clock(), 0, True
        super().on_response_complete()
        begun = len(self.conn.trailing_data[0])
        if self.is_waiting and (begun or self.conn.their_state is h11.SEND_BODY):
            self._late_from, self._received = self.since, begun

    def pause_writing(self) -> None:
        """Note that the client does not take what was sent."""
        self.stuck_since = self.registry.clock()
        super().pause_writing()

    def resume_writing(self) -> None:
        """Note that it goes on."""
        self.stuck_since = None
        super().resume_writing()

    @property
    def is_waiting(self) -> bool:
        """Whether no request is under way."""
        return self.cycle is None or self.cycle.response_complete

    def is_late(self, now: float, seconds: float) -> bool:
        """Whether a header has not arrived in time, or the end of a closed connection cannot be sent."""
        if self.transport.is_closing():
            self.stuck_since = now if self.stuck_since is None else self.stuck_since
            return False
        return self.is_waiting and self._late_from is not None and now - self._late_from > seconds

    def is_slow(self, now: float, speed: float) -> bool:
        """Whether a body is under way that arrives below the least speed."""
        age = now - self.since
        arriving = self.cycle is not None and self.cycle.more_body and not self.flow.read_paused
        return arriving and age > SLOW_AFTER and self._received < speed * age

    def time_out(self, seconds: float) -> None:
        """Close; say why to a client that has begun to ask and has no answer yet."""
        if self._received and self.conn.their_state is not h11.SEND_BODY:
            self.refuse(408, f"The header of the request took longer than {seconds:g} s to arrive. Send it again.")
        else:
            self.transport.close()

    def refuse(self, status: int, detail: str) -> None:
        """Answer without the application, and close."""
        body = problem_bytes(status, detail)
        head = f"HTTP/1.1 {status} Refused\r\nContent-Type: {MEDIA_TYPE}\r\nContent-Length: {len(body)}\r\n"
        self.transport.write(f"{head}Cache-Control: no-store\r\nConnection: close\r\n\r\n".encode() + body)
        self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP."""
        self.refuse(400, "This is not an HTTP/1.1 request. Check the client, or whether it speaks TLS.")


def connection_class(connections: Connections) -> type[Connection]:
    """The class of the connections of one service."""
    return type("CountedConnection", (Connection,), {"registry": connections})


def _spare_descriptors() -> int:
    """Raise the number of descriptors of this process as far as it may; return how many connections that allows."""
    try:
        import resource
    except ImportError:  # Windows has no such number
        return 2**31
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and (hard == resource.RLIM_INFINITY or soft < min(hard, 4096)):
        wanted = 4096 if hard == resource.RLIM_INFINITY else min(hard, 4096)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
            soft = max(soft, wanted)
        except (OSError, ValueError):
            pass
    if soft == resource.RLIM_INFINITY:
        return 2**31
    return max(soft - RESERVED_DESCRIPTORS, soft // 2, 1)
