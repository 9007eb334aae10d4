"""The HTTP service and its page: the same models and the same scores as the library, for programs and for people.

:func:`serve` runs it until it is told to stop. The packages it needs are those of the extra ``serve``.
"""

from __future__ import annotations

from ptad.errors import MissingExtraError
from ptad.service.settings import Limits, ServiceSettings

__all__ = ["Limits", "ServiceSettings", "serve"]


def serve(settings: ServiceSettings) -> None:
    """Serve until SIGTERM or SIGINT; whatever is under way then is finished or left in a state to go on from."""
    try:
        import fastapi  # noqa: F401
        import prometheus_client  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(str(error.name or "fastapi"), "serve", "The service") from error
    from ptad.service.server import run

    run(settings)
