"""A real service in a process of its own, with a tiny model."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from problem_words import check_job, check_problem
from service_tables import make_rows

from ptad import PTAD
from ptad.tables import write_table
from stopping import HANG, Stops, wait_until


class Service:
    """A running ``ptad serve``."""

    def __init__(self, store: Path, *arguments: str, token: str | None = None) -> None:
        self.store = store
        self.stops = Stops(store.parent / f"{store.name}-stops")  # of the service and its workers
        environment = {**os.environ, **self.stops.environment, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
        environment.pop("PTAD_TOKEN", None)
        if token is not None:
            environment["PTAD_TOKEN"] = token
        self.log = store.parent / f"{store.name}.log"
        program = str(Path(sys.executable).parent / "ptad")
        command = [program, "serve", *arguments, "--store", str(store), "--port", "0"]
        with self.log.open("ab") as log:
            self.start = log.tell()
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self.url = self._url()
        hooks = {"response": [lambda answer: check_problem(answer, store)]}
        self.http = httpx.Client(base_url=self.url, timeout=HANG, headers=headers, event_hooks=hooks)

    def _url(self) -> str:
        def ready() -> re.Match[str] | None:
            text = self.log.read_text()[self.start :]
            assert self.process.poll() is None, text
            return re.search(r"http://\S+", text) if "ready:" in text else None

        match: str = wait_until(ready, self.log.read_text).group(0)
        return match

    def stop(self, number: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(HANG)
        self.http.close()
        return code

    def upload(self, content: bytes, name: str = "table.csv") -> httpx.Response:
        return self.http.post(
            "/v1/tables", params={"name": name}, content=content, headers={"Content-Type": "application/octet-stream"}
        )

    def wait(self, job: str) -> dict[str, Any]:
        """The job, once it has ended."""

        def ended() -> dict[str, Any] | None:
            described: dict[str, Any] = self.http.get(f"/v1/jobs/{job}").json()
            return described if described["state"] in ("done", "failed", "cancelled") else None

        job_at_its_end: dict[str, Any] = wait_until(ended, self.log.read_text)
        check_job(job_at_its_end, self.store)
        return job_at_its_end


@pytest.fixture(scope="session")
def rows() -> pa.Table:
    return make_rows(200, 0)


@pytest.fixture(scope="session")
def csv_bytes(rows: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("csv") / "rows.csv"
    write_table(rows, path)
    return path.read_bytes()


@pytest.fixture(scope="session")
def model_folder(rows: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "Tiny Model"
    PTAD(drop=["state"], verbose=0, device="cpu").fit(rows).save(folder)
    return folder


@pytest.fixture(scope="session")
def model(model_folder: Path) -> PTAD:
    return PTAD.load(model_folder, device="cpu")


@pytest.fixture(scope="session")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Service]]:
    """``start(*arguments, store=None, token=None)`` starts a service; all are stopped at the end."""
    with contextlib.ExitStack() as stack:

        def begin(*arguments: Any, store: Path | None = None, token: str | None = None) -> Service:
            service = Service(store or tmp_path_factory.mktemp("service") / "store", *map(str, arguments), token=token)
            stack.callback(service.stop, signal.SIGKILL)
            return service

        yield begin


@pytest.fixture(scope="session")
def service(start: Callable[..., Service], model_folder: Path) -> Service:
    """One service for all tests that do not stop it."""
    return start(model_folder)


@pytest.fixture(scope="session")
def json_rows(rows: pa.Table) -> list[dict[str, Any]]:
    objects: list[dict[str, Any]] = rows.to_pylist()
    return objects


@pytest.fixture(scope="session")
def tiny(tiny: dict[str, Any]) -> dict[str, Any]:
    """A request for a tiny model of the paper's preset: its jobs take some steps and leave checkpoints."""
    pytest.importorskip("torch")
    return {"preset": "paper", "config": tiny}
