"""What stands before every request: who may come in, how much they may bring, and what every answer carries."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from ptad.service.metrics import Metrics
from ptad.service.problems import MEDIA_TYPE, Problem, problem_bytes
from ptad.service.settings import ServiceSettings, is_loopback

Message = dict[str, Any]
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
STALLED_SECONDS = 30.0


class Guard:
    """ASGI middleware: token, host and origin, limits, security headers, counting."""

    def __init__(self, app: Any, settings: ServiceSettings, metrics: Metrics) -> None:
        self.app, self.settings, self.metrics = app, settings, metrics
        self._token = None if settings.token is None else settings.token.encode()
        self._held = 0  # bytes of JSON of all requests under way

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 0
        body = _Body(in_memory=dict(scope["headers"]).get(b"content-type", b"").lower().startswith(b"application/json"))

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                names = {name for name, _ in message["headers"]}
                added = HEADERS if b"cache-control" in names else [*HEADERS, (b"cache-control", b"no-store")]
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        try:
            problem = self._refused(scope)
            if problem is not None:
                await _send_problem(send_with_headers, problem)
                return
            await self.app(scope, self._limited(scope, receive, body), send_with_headers)
        finally:
            self._held -= body.held
            route = getattr(scope.get("route"), "path", "other")
            method = scope["method"] if scope["method"] in ("GET", "POST", "PATCH", "DELETE", "HEAD") else "other"
            self.metrics.requests.labels(method, route, str(status)).inc()
            self.metrics.seconds.labels(route).observe(time.perf_counter() - started)

    def _refused(self, scope: Message) -> Problem | None:
        headers: dict[bytes, bytes] = dict(scope["headers"])
        path = scope["path"]
        if self._token is not None:
            if path.startswith("/v1") or path == "/metrics":
                kind, _, given = headers.get(b"authorization", b"").partition(b" ")
                if kind.lower() != b"bearer" or not hmac.compare_digest(given.strip(), self._token):
                    return Problem(
                        401,
                        "Send the token of this service as the header 'Authorization: Bearer TOKEN'.",
                        headers={"WWW-Authenticate": "Bearer"},
                    )
        elif not is_loopback(_host_name(headers.get(b"host", b""))):
            # a page from elsewhere whose name was pointed at this machine
            return Problem(403, "This service answers to localhost only. Use http://127.0.0.1 or http://localhost.")
        origin = headers.get(b"origin")
        foreign = origin is not None and origin.partition(b"://")[2].lower() != headers.get(b"host", b"").lower()
        if foreign and scope["method"] not in ("GET", "HEAD"):
            return Problem(403, "Pages of other sites may not use this service.")
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > self._most(path):
            return too_large(self._most(path))
        return None

    def _most(self, path: str) -> int:
        limits = self.settings.limits
        return limits.body_bytes if path.endswith(UPLOADS) else limits.json_bytes

    def _limited(self, scope: Message, receive: Receive, body: _Body) -> Receive:
        most = self._most(scope["path"])

        async def limited() -> Message:
            if body.complete:  # from here on only the end of the connection is waited for
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), STALLED_SECONDS)
            except TimeoutError:
                raise Problem(408, f"Nothing arrived for {STALLED_SECONDS:g} seconds. Send it again.") from None
            if message["type"] == "http.request":
                n = len(message.get("body", b""))
                body.seen += n
                body.complete = not message.get("more_body", False)
                if body.seen > most:
                    raise too_large(most)
                if body.in_memory:
                    body.held += n
                    self._held += n
                    if self._held > self.settings.limits.json_held:
                        raise Problem(
                            503,
                            "Too many large JSON bodies are under way. Try again in a moment.",
                            headers={"Retry-After": "1"},
                        )
            return message

        return limited


@dataclass
class _Body:
    """What has arrived of one request."""

    in_memory: bool  # JSON is held as a whole; files are spooled to the disk
    seen: int = 0
    held: int = 0
    complete: bool = False


def too_large(most: int) -> Problem:
    """The problem of a body beyond its limit."""
    return Problem(
        413, f"The body is larger than {most:,} bytes, the limit of this service. Send less, or raise the limit."
    )


def _host_name(host: bytes) -> str:
    try:
        return urlsplit("//" + host.decode("latin-1")).hostname or ""
    except ValueError:
        return ""


async def _send_problem(send: Send, problem: Problem) -> None:
    body = problem_bytes(problem.status_code, str(problem.detail))
    headers = [(b"content-type", MEDIA_TYPE.encode()), (b"content-length", str(len(body)).encode())]
    headers += [(k.lower().encode(), v.encode()) for k, v in (problem.headers or {}).items()]
    await send({"type": "http.response.start", "status": problem.status_code, "headers": headers})
    await send({"type": "http.response.body", "body": body})
