"""The middleware before every request: token, host and origin, limits of bodies, security headers, audit, metrics."""

from __future__ import annotations

import asyncio
import hmac
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPMethod
from typing import Any

from starlette.types import Message, Receive, Scope, Send

from ptad.service.logs import audit
from ptad.service.metrics import Metrics
from ptad.service.problems import Problem, error_response
from ptad.service.settings import ServiceSettings, is_loopback

Headers = dict[bytes, bytes]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
]
TABLE_PATHS = ("/v1/tables", "/score")  # ends of addresses that take whole files
ROW_PATHS = ("/score", "/explain")  # ends of addresses that take rows as JSON
METHODS = frozenset(HTTPMethod)  # any other is logged and counted as "other"
CLOSE = {"Connection": "close"}  # the rest of the body is not read
PAUSE_SECONDS, LINGER_SECONDS = 5.0, 30.0  # for the rest of a refused body: between two parts, and in all


class Guard:
    """ASGI middleware: authenticates and limits requests, adds headers, logs and counts."""

    def __init__(self, app: Any, settings: ServiceSettings, metrics: Metrics) -> None:
        self.app, self.settings, self.metrics = app, settings, metrics
        self._token = None if settings.token is None else settings.token.encode()
        self.buffered = 0  # bytes of bodies in memory, of all requests under way

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status, lingers, has_token = time.perf_counter(), 0, False, False
        headers: Headers = dict(reversed(scope["headers"]))  # of two with the same name the first, as Starlette does
        path, method = scope["path"], scope["method"] if scope["method"] in METHODS else "other"
        is_json = headers.get(b"content-type", b"").lower().startswith(b"application/json")
        most = self._most_bytes(path, is_json)
        body = _Body(self, receive, most)

        async def send_with_headers(message: Message) -> None:
            nonlocal status, lingers
            if message["type"] == "http.response.start":
                status = message["status"]
                lingers = not body.complete and _closes(scope, message)
                names = {name for name, _ in message["headers"]}
                no_store = [] if b"cache-control" in names else [(b"cache-control", b"no-store")]
                message = {**message, "headers": [*message["headers"], *SECURITY_HEADERS, *no_store]}
            elif lingers and not message.get("more_body", False):
                await send({**message, "more_body": True})
                await _drain(receive)
                message = {"type": "http.response.body"}
            await send(message)

        try:
            has_token = self._authenticate(path, headers)
            self._check(headers, method, most)
            await self.app(scope, body.receive, send_with_headers)
        except Exception as error:
            answer = error_response(error)
            if status:  # half an answer is out: the connection is closed, so that nobody takes it for a whole one
                raise
            await answer(scope, receive, send_with_headers)
        finally:
            self.buffered -= body.buffered
            if not (is_json and path.endswith(ROW_PATHS) and 0 < status < 400):
                audit(scope, method, status, token=has_token)
            route = getattr(scope.get("route"), "path", "other")
            self.metrics.requests.labels(method, route, str(status)).inc()
            self.metrics.seconds.labels(route).observe(time.perf_counter() - started)

    def _authenticate(self, path: str, headers: Headers) -> bool:
        """Return whether the token came with the request; raise a problem if it is needed and missing or wrong."""
        if self._token is None or not (path.startswith("/v1") or path == "/metrics"):
            return False
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() != b"bearer" or not hmac.compare_digest(token.strip(), self._token):
            message = "Send the token of this service as the header 'Authorization: Bearer TOKEN'."
            raise Problem(401, message, headers={"WWW-Authenticate": "Bearer"})
        return True

    def _check(self, headers: Headers, method: str, most: int) -> None:
        """Refuse requests of foreign pages, ambiguous lengths, and bodies whose declared length is too large."""
        if self._token is None and not is_loopback(_host_name(headers.get(b"host", b""))):
            # DNS rebinding: a page of another site whose name resolves to this machine
            raise Problem(403, "This service answers to localhost only. Use http://127.0.0.1 or http://localhost.")
        if _is_cross_site(method, headers):
            raise Problem(403, "Pages of other sites may not use this service.")
        if b"content-length" in headers and b"transfer-encoding" in headers:
            # request smuggling: a proxy before this service may have used the other one
            raise Problem(400, "The request has both Content-Length and Transfer-Encoding. Send one.", headers=CLOSE)
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > most:
            raise _too_large(most)

    def _most_bytes(self, path: str, is_json: bool) -> int:
        limits = self.settings.limits
        if path.endswith(TABLE_PATHS) and not is_json:
            return limits.body_bytes
        return limits.json_bytes if path.endswith(ROW_PATHS) else limits.message_bytes


@dataclass
class _Body:
    """The body of a request: how much of it has arrived, how much of that is in memory, how long it was waited for."""

    guard: Guard
    source: Receive
    most: int
    n_received: int = 0
    buffered: int = 0
    complete: bool = False
    waited: float = 0.0  # seconds, in all
    window: float = 0.0  # seconds of waiting since the speed was last checked
    window_start: int = 0  # bytes that had arrived then

    async def receive(self) -> Message:
        """Receive the next part, within the limits."""
        if self.complete:  # from here on only a disconnect is waited for
            return await self.source()
        limits, message = self.guard.settings.limits, await self._timed()
        if message["type"] == "http.request":
            n = len(message.get("body", b""))
            self.n_received += n
            self.complete = not message.get("more_body", False)
            if self.n_received > self.most:
                raise _too_large(self.most)
            n_new = min(n, limits.small_upload_bytes - self.buffered)  # what is beyond that is written to the disk
            self.buffered += n_new
            self.guard.buffered += n_new
            if self.guard.buffered > limits.json_held:
                message_text = "Too many large JSON bodies and uploads are under way. Try again in a moment."
                raise Problem(503, message_text, headers={"Retry-After": "1", **CLOSE})
        return message

    async def _timed(self) -> Message:
        """Wait for the next part; only waiting counts, not what the service does with the parts before."""
        limits = self.guard.settings.limits
        while True:
            started, message = time.monotonic(), None
            with suppress(TimeoutError):
                async with asyncio.timeout(max(limits.body_window_seconds - self.window, 0.0)):
                    message = await self.source()
            seconds = time.monotonic() - started
            self.window += seconds
            self.waited += seconds
            if self.waited > limits.body_seconds:
                raise Problem(408, f"The body took longer than {limits.body_seconds:g} s to arrive.", headers=CLOSE)
            if message is not None:
                return message
            if self.n_received - self.window_start < limits.body_speed * limits.body_window_seconds:
                slow = f"The body arrived more slowly than {limits.body_speed:,} bytes per second."
                raise Problem(408, f"{slow} Send it again over a faster line, or compressed.", headers=CLOSE)
            self.window, self.window_start = 0.0, self.n_received


def _closes(scope: Scope, answer: Message) -> bool:
    """Return whether an answer closes a connection on which the client is still sending a body."""
    expects_continue = any(name == b"expect" for name, _ in scope["headers"])  # and does not send before
    return answer["status"] != 408 and not expects_continue and (b"connection", b"close") in answer["headers"]


async def _drain(receive: Receive) -> None:
    """Read the rest of a refused body for a while: a connection that is closed before is reset, the answer lost."""
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER_SECONDS):
            while True:
                async with asyncio.timeout(PAUSE_SECONDS):
                    message = await receive()
                if message["type"] != "http.request" or not message.get("more_body", False):
                    return


def _too_large(most: int) -> Problem:
    message = f"The body is larger than {most:,} bytes, the limit of this service."
    return Problem(413, f"{message} Send less, or ask its operator to raise the limit.", headers=CLOSE)


def _is_cross_site(method: str, headers: Headers) -> bool:
    """Return whether a page of another site sent the request; following a link from there is allowed."""
    origin = headers.get(b"origin")
    if origin is not None:
        return origin.partition(b"://")[2].lower() != headers.get(b"host", b"").lower()
    is_link = headers.get(b"sec-fetch-mode") == b"navigate" and method in ("GET", "HEAD")
    return headers.get(b"sec-fetch-site", b"").lower() in (b"cross-site", b"same-site") and not is_link


def _host_name(host: bytes) -> str:
    """Return the name or address of a Host header; nothing if the header has more than that and a port."""
    match = re.fullmatch(r"([\w.-]+|\[[0-9a-fA-F:.]+\])(:\d+)?", host.decode("latin-1"), re.ASCII)
    return match[1] if match else ""
