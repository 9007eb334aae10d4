"""``ptad serve``: models over HTTP, with a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ptad.cli import options
from ptad.cli.console import set_up_logging

EXAMPLES = """
ptad serve
ptad serve model --port 9000
ptad serve models/a models/b --store /var/lib/ptad
PTAD_TOKEN=... ptad serve --host 0.0.0.0 --store /var/lib/ptad
Then open http://127.0.0.1:8000, or: curl http://127.0.0.1:8000/v1/models
"""


def serve(
    models: Annotated[
        list[Path] | None, typer.Argument(help="Model folders to serve beside those of the store.", show_default=False)
    ] = None,
    store: Annotated[
        Path, typer.Option(help="Folder for uploads, jobs and models; made if it is not there.", metavar="DIR")
    ] = Path("ptad-store"),
    host: Annotated[str, typer.Option(help="Address to listen on; others than loopback need a token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.")] = 8000,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="PTAD_TOKEN",
            help="What callers must send as 'Authorization: Bearer TOKEN'. The environment variable hides it "
            "from process lists.",
            show_envvar=True,
        ),
    ] = None,
    device: options.Device = None,
    max_upload: Annotated[int, typer.Option(min=1, help="Largest upload, in MiB.", metavar="MIB")] = 1024,
    jobs: Annotated[int, typer.Option(min=1, max=64, help="Jobs that run at the same time.")] = 1,
    grace: Annotated[float, typer.Option(min=0, help="Seconds that running jobs may go on after SIGTERM.")] = 20.0,
    limit: Annotated[
        list[str] | None,
        typer.Option(
            help="Another limit, such as connections=1000 or worker_memory=8GiB; may be repeated. GET /v1/service "
            "names them all.",
            metavar="NAME=NUMBER",
            show_default=False,
        ),
    ] = None,
    quiet: options.Quiet = False,
) -> None:
    """Serve models over HTTP: score, explain, fit from an upload, and a page to do it all in a browser."""
    from ptad.service import Limits, ServiceSettings
    from ptad.service import serve as run

    set_up_logging(quiet)
    limits = Limits(body_bytes=max_upload * 2**20, table_bytes=4 * max_upload * 2**20, jobs_running=jobs)
    limits = limits.changed(limit or ())
    run(
        ServiceSettings(
            store=store,
            models=tuple(models or ()),
            host=host,
            port=port,
            token=token or None,
            device=device or "auto",
            grace_seconds=grace,
            limits=limits,
        )
    )
