"""The HTTP service and its page: the models and scores of the library, for programs and for people.

:func:`serve` runs it until it is asked to stop. It needs the packages of the extra ``serve``.
"""

from __future__ import annotations

from ptad.errors import needs_extra
from ptad.service.settings import Limits, ServiceSettings

__all__ = ["Limits", "ServiceSettings", "serve"]


def serve(settings: ServiceSettings) -> None:
    """Serve until SIGTERM or SIGINT; what runs then is finished, or stops at its checkpoint."""
    with needs_extra("serve", "The service"):
        import fastapi  # noqa: F401
        import prometheus_client  # noqa: F401
        import uvicorn  # noqa: F401
    from ptad.service.server import run

    run(settings)
