"""Errors as ``application/problem+json`` (RFC 9457)."""

from __future__ import annotations

import json
import logging
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from ptad.errors import UserError
from ptad.service.error_messages import is_disk_full, short_traceback, user_message

logger = logging.getLogger("ptad.service")

MEDIA_TYPE = "application/problem+json"
_DETAILS = {  # in place of the texts of the framework
    "Not Found": "Nothing is at this address. The addresses are listed in /openapi.json.",
    "Method Not Allowed": "This address does not support this method. The methods are listed in /openapi.json.",
    "There was an error parsing the body": "The body is not JSON in UTF-8. See /openapi.json for the right form.",
}


class Problem(HTTPException):
    """An error answer: a status, and a text that says what is wrong, where, and what to do."""


def problem_bytes(status: int, detail: str, **members: Any) -> bytes:
    """Return the body of a problem; in ASCII, so that even a lone surrogate in a name can be sent."""
    title = HTTPStatus(status).phrase
    return json.dumps(
        {"type": "about:blank", "title": title, "status": status, "detail": detail[:4000], **members}
    ).encode()


def _problem_response(status: int, detail: str, headers: dict[str, str] | None = None, **members: Any) -> Response:
    return Response(problem_bytes(status, detail, **members), status, headers, MEDIA_TYPE)


def error_response(error: Exception) -> Response:
    """Return the answer to a request that ended with an error."""
    message = user_message(error)
    if message is not None and is_disk_full(error):
        logger.warning("a request was refused: the disk is full")
        return _problem_response(507, message)
    if message is not None:
        return _problem_response(400 if isinstance(error, UserError) else 409, message, kind=type(error).__name__)
    if isinstance(error, RequestValidationError):
        return _validation_response(error)
    if isinstance(error, HTTPException):
        detail = _DETAILS.get(str(error.detail), str(error.detail))
        return _problem_response(error.status_code, detail, dict(error.headers or {}))
    if isinstance(error, ClientDisconnect):
        logger.debug("a client disconnected: %s", type(error).__name__)
        return Response(status_code=400)  # nobody reads it
    logger.error("unexpected %s", short_traceback(error))
    return _problem_response(500, "This is a bug in the service. Its log says where; please report it.")


def add_handlers(app: FastAPI) -> None:
    """Replace the error answers of FastAPI; all other errors reach :class:`~ptad.service.security.Guard`."""

    async def answer(request: Request, error: Exception) -> Response:
        return error_response(error)

    for kind in (HTTPException, RequestValidationError):
        app.add_exception_handler(kind, answer)


def _validation_response(error: RequestValidationError) -> Response:
    # what was sent is not echoed: it may be data
    places = [
        {"where": ".".join(str(part) for part in entry["loc"])[:200], "what": str(entry["msg"])[:300]}
        for entry in error.errors()[:10]
    ]
    detail = "; ".join(f"{p['where']}: {p['what']}" for p in places) + ". See /openapi.json for the right form."
    return _problem_response(422, detail, errors=places)
