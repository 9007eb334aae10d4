"""Requests that schemathesis makes up from the OpenAPI description, to every address and method of the service.

    python benchmarks/made_up_requests.py [--max-examples 100] [--phases examples,coverage,fuzzing]

Names of real models, tables and jobs are mixed in, so that not all of them end at "there is no such thing"; what may be
deleted or cancelled is kept apart from what is asked. Prints the counts; fails at the first answer 5xx that is not 503.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import httpx
import numpy as np
import psutil

from ptad import PTAD

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
TINY = {"embedding_dim": 4, "n_heads": 1, "abd_width": 8, "n_steps": 20, "n_folds": 2, "n_reference": 32}
BIN = Path(sys.executable).parent


def table_bytes() -> bytes:
    rows = np.random.default_rng(0).normal(size=(200, 3))
    return b"a,b,c\n" + b"".join(b"%f,%f,%f\n" % tuple(row) for row in rows)


def filled(http: httpx.Client) -> dict[str, list[str]]:
    """Make tables, models and jobs; those to be deleted are others than those to be asked."""
    tables = []
    for _ in range(9):
        answer = http.post("/v1/tables", content=table_bytes(), headers={"Content-Type": "text/csv"})
        assert answer.status_code == 201, answer.text
        tables.append(answer.json()["id"])
    fit = {"table": tables[0], "config": TINY}
    jobs = [http.post("/v1/fits", json=fit).json() for _ in range(5)]
    jobs += [http.post("/v1/scorings", json={"table": tables[0], "model": "model"}).json() for _ in range(2)]
    while any(job["state"] in ("waiting", "running") for job in http.get("/v1/jobs").json()):
        time.sleep(0.2)
    fits, scorings = jobs[:5], jobs[5:]
    doomed = [http.post("/v1/fits", json=fit).json() for _ in range(6)]
    return {
        "tables": tables[:3],
        "doomed-tables": tables[3:],
        "models": ["model", fits[0]["model"]],
        "doomed-models": [job["model"] for job in fits[1:]],
        "jobs": [job["id"] for job in (fits[0], *scorings)],
        "doomed-jobs": [job["id"] for job in doomed],
    }


def settings(names: dict[str, list[str]]) -> str:
    lines = [f"[dictionaries.{name}]\nvalues = {json.dumps(values)}" for name, values in names.items()]
    lines.append("[parameters]")
    places = {"path.model": "models", "path.table": "tables", "path.job": "jobs"}
    places |= {"body.table": "tables", "body.model": "models"}
    lines += [f'"{key}" = {{ dictionary = "{name}", probability = 0.7 }}' for key, name in places.items()]
    for operation, key, name in (
        ("DELETE /v1/models/{model}", "path.model", "doomed-models"),
        ("DELETE /v1/tables/{table}", "path.table", "doomed-tables"),
        ("DELETE /v1/jobs/{job}", "path.job", "doomed-jobs"),
        ("POST /v1/jobs/{job}/cancel", "path.job", "doomed-jobs"),
    ):
        lines.append(f'[[operations]]\ninclude-name = "{operation}"')
        lines.append(f'parameters = {{ "{key}" = {{ dictionary = "{name}", probability = 0.5 }} }}')
    # the longest lists that POST /v1/fits takes (5,000 names of 1,000 letters) are more than schemathesis can make
    lines.append('[[operations]]\ninclude-name = "POST /v1/fits"\nphases.coverage.enabled = false')
    return "\n".join(lines) + "\n"


def impatient(url: str, over: threading.Event) -> None:
    """Cancel every job after a few seconds: the stream of its events, which is asked for as well, ends with it."""
    with httpx.Client(base_url=url, timeout=120) as http:
        while not over.wait(1.0):
            for job in http.get("/v1/jobs").json():
                if job["state"] in ("waiting", "running") and time.time() - job["created"] > 5:
                    http.post(f"/v1/jobs/{job['id']}/cancel")


def counted(report: Path) -> Counter[tuple[str, int]]:
    """(method, status) of every request in the report."""
    log = json.loads(report.read_text())["log"]["entries"]
    return Counter((entry["request"]["method"], entry["response"]["status"]) for entry in log)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--max-examples", type=int, default=100)
    parser.add_argument("--phases", default="examples,coverage,fuzzing")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        rows = np.random.default_rng(0).normal(size=(200, 3))
        PTAD(config=TINY, verbose=0, device="cpu").fit(rows).save(folder / "model")
        log = folder / "log"
        command = [BIN / "ptad", "serve", folder / "model", "--store", folder / "store", "--port", "0", "--grace", "0"]
        with log.open("w") as file:
            environment = {**os.environ, "OMP_NUM_THREADS": "1"}
            service = subprocess.Popen([str(part) for part in command], stderr=file, env=environment)
        try:
            while "ready:" not in log.read_text():
                time.sleep(0.1)
            url = re.search(r"http://\S+", log.read_text())[0]  # type: ignore[index]
            with httpx.Client(base_url=url, timeout=120) as http:
                names = filled(http)
                operations = sum(len(methods) for methods in http.get("/openapi.json").json()["paths"].values())
            (folder / "schemathesis.toml").write_text(settings(names))
            memory = psutil.Process(service.pid).memory_info().rss
            run = [str(BIN / "schemathesis"), "run", f"{url}/openapi.json", "--checks", CHECKS, "--no-color"]
            run += ["--max-examples", str(options.max_examples), "--seed", str(options.seed)]
            run += ["--phases", options.phases, "--request-timeout", "60", "--continue-on-failure"]
            over = threading.Event()
            threading.Thread(target=impatient, args=(url, over), daemon=True).start()
            done = subprocess.run([*run, "--report-har-path", "requests.har"], cwd=folder, check=False)
            over.set()
            found = counted(folder / "requests.har")
            print(f"{operations} operations, {sum(found.values()):,} requests")
            for method in sorted({method for method, _ in found}):
                statuses = {status: n for (m, status), n in sorted(found.items()) if m == method}
                print(f"  {method}: " + ", ".join(f"{status} {n:,} times" for status, n in statuses.items()))
            now = psutil.Process(service.pid).memory_info().rss
            print(f"memory of the service {memory / 2**20:.0f} MiB before, {now / 2**20:.0f} MiB after")
            wrong = [status for _, status in found if status >= 500 and status != 503]
            print(
                f"answers 5xx: {wrong or 'none'}; 'unexpected' in the log: {log.read_text().count('unexpected')} times"
            )
        finally:
            service.send_signal(signal.SIGTERM)
            print(f"the service ended with {service.wait(60)}")
        sys.exit(done.returncode or bool(wrong))


if __name__ == "__main__":
    main()
