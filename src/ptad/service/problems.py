"""Errors as ``application/problem+json`` (RFC 9457): what is wrong, who is the culprit, what to do about it."""

from __future__ import annotations

import json
import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from ptad.errors import UserError
from ptad.service.reasons import disk_is_full, reason_of, traced

logger = logging.getLogger("ptad.service")

MEDIA_TYPE = "application/problem+json"
TITLES = {
    400: "The request cannot be used as it is",
    401: "A token is needed",
    403: "Not allowed",
    404: "There is no such thing",
    405: "This address does not do that",
    408: "The request took too long to arrive",
    409: "Not possible in this state",
    413: "Too large",
    415: "Not a format that can be read",
    422: "The request does not have the right form",
    429: "Too much at a time",
    500: "Something went wrong inside the service",
    503: "Not available just now",
    507: "The disk is full",
}
_STARLETTE = {  # what the framework says by itself, in words that help
    (404, "Not Found"): "Nothing is at this address. The addresses are listed in /openapi.json.",
    (405, "Method Not Allowed"): "This method is not possible here. What is possible is listed in /openapi.json.",
    (
        400,
        "There was an error parsing the body",
    ): "The body is not JSON in UTF-8. See /openapi.json for the right form.",
}


class Problem(HTTPException):
    """An answer that explains itself. It is an HTTPException so that it passes through FastAPI's body reading."""

    def __init__(self, status: int, detail: str, *, headers: dict[str, str] | None = None) -> None:
        super().__init__(status, detail, headers)


def problem_bytes(status: int, detail: str, **more: Any) -> bytes:
    """The body of a problem; escaped to ASCII, so that even half a surrogate pair in a name can be sent."""
    content = {
        "type": "about:blank",
        "title": TITLES.get(status, "Problem"),
        "status": status,
        "detail": detail[:4000],
        **more,
    }
    return json.dumps(content).encode()


def problem_response(status: int, detail: str, headers: dict[str, str] | None = None, **more: Any) -> Response:
    """A whole answer."""
    return Response(problem_bytes(status, detail, **more), status, headers, MEDIA_TYPE)


def answer_to(error: Exception) -> Response:
    """Every way in which a request can fail ends in a problem."""
    reason = reason_of(error)
    if reason is not None and disk_is_full(error):
        logger.warning("a request was refused: the disk is full")
        return problem_response(507, reason)
    if reason is not None:
        return problem_response(400 if isinstance(error, UserError) else 409, reason, kind=type(error).__name__)
    if isinstance(error, RequestValidationError):
        return _wrong_form(error)
    if isinstance(error, HTTPException):
        detail = _STARLETTE.get((error.status_code, str(error.detail)), str(error.detail))
        return problem_response(error.status_code, detail, dict(error.headers or {}))
    if isinstance(error, ClientDisconnect):
        logger.debug("a client is gone: %s", type(error).__name__)
        return Response(status_code=400)  # nobody reads it
    logger.error("unexpected %s", traced(error))
    return problem_response(500, "This is a bug in the service. Its log says where; please report it.")


def add_handlers(app: FastAPI) -> None:
    """Let what the framework would answer by itself be a problem, too; all other errors reach the guard."""

    async def answer(request: Request, error: Exception) -> Response:
        return answer_to(error)

    for kind in (HTTPException, RequestValidationError):
        app.add_exception_handler(kind, answer)


def _wrong_form(error: RequestValidationError) -> Response:
    # what was sent is not echoed: it may be data
    places = [
        {"where": ".".join(str(part) for part in found["loc"])[:200], "what": str(found["msg"])[:300]}
        for found in error.errors()[:10]
    ]
    detail = "; ".join(f"{p['where']}: {p['what']}" for p in places) + ". See /openapi.json for the right form."
    return problem_response(422, detail, errors=places)
