"""What stands before every request: who may come in, how much they may bring, and what every answer carries."""

from __future__ import annotations

import asyncio
import hmac
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ptad.service.logs import audit
from ptad.service.metrics import Metrics
from ptad.service.problems import Problem, answer_to
from ptad.service.settings import ServiceSettings, is_loopback

Message = MutableMapping[str, Any]
Headers = dict[bytes, bytes]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
]
UPLOADS = ("/v1/tables", "/score")  # addresses that take whole files
ROWS = ("/score", "/explain")  # addresses that take rows as JSON
CLOSE = {"Connection": "close"}  # the rest of the body is of no use
PAUSE_SECONDS, LINGER_SECONDS = 5.0, 30.0  # for the rest of a refused body: between two parts, and in all


class Guard:
    """ASGI middleware: token, host and origin, limits, security headers, counting."""

    def __init__(self, app: Any, settings: ServiceSettings, metrics: Metrics) -> None:
        self.app, self.settings, self.metrics = app, settings, metrics
        self._token = None if settings.token is None else settings.token.encode()
        self.held = 0  # bytes of bodies of all requests under way

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status, lingers, known = time.perf_counter(), 0, False, False
        headers: Headers = dict(reversed(scope["headers"]))  # of two of a name the first, as the framework takes it
        is_json = headers.get(b"content-type", b"").lower().startswith(b"application/json")
        most = self._most(scope["path"], is_json)
        body = _Body(self, receive, most)

        async def send_with_headers(message: Message) -> None:
            nonlocal status, lingers
            if message["type"] == "http.response.start":
                status = message["status"]
                lingers = not body.complete and _closes(scope, message)
                names = {name for name, _ in message["headers"]}
                added = HEADERS if b"cache-control" in names else [*HEADERS, (b"cache-control", b"no-store")]
                message = {**message, "headers": [*message["headers"], *added]}
            elif lingers and not message.get("more_body", False):
                await send({**message, "more_body": True})
                await _take_rest(receive)
                message = {"type": "http.response.body"}
            await send(message)

        try:
            known = self._has_token(scope["path"], headers)
            self._check(headers, scope["method"], most)
            await self.app(scope, body.receive, send_with_headers)
        except Exception as error:
            answer = answer_to(error)
            if status:  # half an answer is out: the connection is closed, so that nobody takes it for a whole one
                raise
            await answer(scope, receive, send_with_headers)
        finally:
            self.held -= body.held
            if not (is_json and scope["path"].endswith(ROWS) and 0 < status < 400):
                audit(scope, status, token=known)
            route = getattr(scope.get("route"), "path", "other")
            method = scope["method"] if scope["method"] in ("GET", "POST", "PATCH", "DELETE", "HEAD") else "other"
            self.metrics.requests.labels(method, route, str(status)).inc()
            self.metrics.seconds.labels(route).observe(time.perf_counter() - started)

    def _has_token(self, path: str, headers: Headers) -> bool:
        """Return whether the token came with the request; refuse one that needs it and does not have it."""
        if self._token is None or not (path.startswith("/v1") or path == "/metrics"):
            return False
        kind, _, given = headers.get(b"authorization", b"").partition(b" ")
        if kind.lower() != b"bearer" or not hmac.compare_digest(given.strip(), self._token):
            raise Problem(
                401,
                "Send the token of this service as the header 'Authorization: Bearer TOKEN'.",
                headers={"WWW-Authenticate": "Bearer"},
            )
        return True

    def _check(self, headers: Headers, method: str, most: int) -> None:
        """Refuse requests from elsewhere, and what is too large as far as it says so itself."""
        if self._token is None and not is_loopback(_host_name(headers.get(b"host", b""))):
            # a page from elsewhere whose name was pointed at this machine
            raise Problem(403, "This service answers to localhost only. Use http://127.0.0.1 or http://localhost.")
        if _is_foreign(method, headers):
            raise Problem(403, "Pages of other sites may not use this service.")
        if b"content-length" in headers and b"transfer-encoding" in headers:
            # two ends of one body: what stands before this service may have seen the other one
            raise Problem(400, "The request has both Content-Length and Transfer-Encoding. Send one.", headers=CLOSE)
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > most:
            raise too_large(most)

    def _most(self, path: str, is_json: bool) -> int:
        limits = self.settings.limits
        if path.endswith(UPLOADS) and not is_json:
            return limits.body_bytes
        return limits.json_bytes if path.endswith(ROWS) else limits.message_bytes


@dataclass
class _Body:
    """The body of a request: how much of it has arrived, how much of that is held, and how long it was waited for."""

    guard: Guard
    source: Receive
    most: int
    seen: int = 0
    held: int = 0
    complete: bool = False
    waited: float = 0.0  # seconds, in all
    window: float = 0.0  # seconds since the speed was looked at
    window_start: int = 0  # bytes that had arrived then

    async def receive(self) -> Message:
        """Take the next part, within the limits."""
        if self.complete:  # from here on only the end of the connection is waited for
            return await self.source()
        limits, message = self.guard.settings.limits, await self._timed()
        if message["type"] == "http.request":
            n = len(message.get("body", b""))
            self.seen += n
            self.complete = not message.get("more_body", False)
            if self.seen > self.most:
                raise too_large(self.most)
            more = min(n, limits.small_upload_bytes - self.held)  # what is beyond that has a place on the disk
            self.held += more
            self.guard.held += more
            if self.guard.held > limits.json_held:
                raise Problem(
                    503,
                    "Too many large JSON bodies and uploads are under way. Try again in a moment.",
                    headers={"Retry-After": "1", **CLOSE},
                )
        return message

    async def _timed(self) -> Message:
        """Wait for the next part; only waiting counts, not what the service does with the parts before."""
        limits = self.guard.settings.limits
        while True:
            started, message = time.monotonic(), None
            with suppress(TimeoutError):
                async with asyncio.timeout(max(limits.body_window_seconds - self.window, 0.0)):
                    message = await self.source()
            passed = time.monotonic() - started
            self.window += passed
            self.waited += passed
            if self.waited > limits.body_seconds:
                raise Problem(408, f"The body took longer than {limits.body_seconds:g} s to arrive.", headers=CLOSE)
            if message is not None:
                return message
            if self.seen - self.window_start < limits.body_speed * limits.body_window_seconds:
                raise Problem(
                    408,
                    f"The body arrived more slowly than {limits.body_speed:,} bytes per second. Send it again over a "
                    "faster line, or compressed.",
                    headers=CLOSE,
                )
            self.window, self.window_start = 0.0, self.seen


def _closes(scope: Message, answer: Message) -> bool:
    """Whether an answer closes a connection on which a body is under way."""
    waits = any(name == b"expect" for name, _ in scope["headers"])  # until it is told to send
    return answer["status"] != 408 and not waits and (b"connection", b"close") in answer["headers"]


async def _take_rest(receive: Receive) -> None:
    """Take the rest of a refused body, for a while: if the connection is closed before, the client loses the answer."""
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER_SECONDS):
            while True:
                async with asyncio.timeout(PAUSE_SECONDS):
                    message = await receive()
                if message["type"] != "http.request" or not message.get("more_body", False):
                    return


def too_large(most: int) -> Problem:
    """The problem of a body beyond its limit."""
    return Problem(
        413,
        f"The body is larger than {most:,} bytes, the limit of this service. Send less, or raise the limit.",
        headers=CLOSE,
    )


def _is_foreign(method: str, headers: Headers) -> bool:
    """Whether a page of another site sent this. Following a link to this service is no such thing."""
    origin = headers.get(b"origin")
    if origin is not None:
        return origin.partition(b"://")[2].lower() != headers.get(b"host", b"").lower()
    followed = headers.get(b"sec-fetch-mode") == b"navigate" and method in ("GET", "HEAD")
    return headers.get(b"sec-fetch-site", b"").lower() in (b"cross-site", b"same-site") and not followed


def _host_name(host: bytes) -> str:
    """The name or address of a Host header that has nothing else but a port; otherwise nothing."""
    found = re.fullmatch(r"([\w.-]+|\[[0-9a-fA-F:.]+\])(:\d+)?", host.decode("latin-1"), re.ASCII)
    return "" if found is None else found[1]
