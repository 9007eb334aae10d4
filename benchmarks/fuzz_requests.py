"""Fuzz test of the service: schemathesis sends requests to every address and method of the OpenAPI description.

    python benchmarks/fuzz_requests.py [--max-examples 100] [--phases examples,coverage,fuzzing,stateful]

Names of existing models, tables and jobs are mixed in, so that not all answers are 404, with rows, files and settings
that fit them (``fuzz_values.py``). Requests that delete or cancel use other names than the rest. Prints the counts and
the share of 2xx answers; fails at a 5xx answer other than 503 and 507.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import numpy as np
import psutil
import pyarrow as pa
from fuzz_values import COLOURS, NUMBERS, file_bytes

from ptad import PTAD

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
TINY = {"reference.rows": 100, "calibration.folds": 10}
BIN = Path(sys.executable).parent


def real_table() -> pa.Table:
    """Return a table with the columns of the served model."""
    rng = np.random.default_rng(0)
    columns = {name: pa.array(rng.normal(size=200)) for name in NUMBERS}
    return pa.table(
        columns | {"colour": rng.choice(COLOURS, 200), "state": np.where(rng.random(200) < 0.1, "bad", "ok")}
    )


def fill_store(http: httpx.Client) -> dict[str, list[str]]:
    """Create tables, models and jobs; those to be deleted are separate from those to be used."""
    tables = []
    content = file_bytes(real_table(), "csv")
    for _ in range(9):
        answer = http.post("/v1/tables", content=content, headers={"Content-Type": "text/csv"})
        assert answer.status_code == 201, answer.text
        tables.append(answer.json()["id"])
    fit = {"table": tables[0], "config": TINY, "drop": ["state"]}
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
    """Return the settings of schemathesis as TOML."""
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
    hooks = Path(__file__).with_name("fuzz_values.py")
    return f"hooks = {json.dumps(str(hooks))}\n" + "\n".join(lines) + "\n"


def make_room(url: str, names: dict[str, list[str]], stop: threading.Event) -> None:
    """Cancel jobs that have waited or run for a few seconds, and delete tables beyond the first 100.

    The stream of events of a job, which is requested as well, ends with it.
    """
    with httpx.Client(base_url=url, timeout=120) as http:
        while not stop.wait(0.5):
            for job in http.get("/v1/jobs").json():
                age = time.time() - (job["started"] or job["created"])
                if (job["state"] == "waiting" and age > 6) or (job["state"] == "running" and age > 8):
                    http.post(f"/v1/jobs/{job['id']}/cancel")
            for table in http.get("/v1/tables").json()[100:]:
                if table["id"] not in names["tables"] + names["doomed-tables"]:
                    http.delete(f"/v1/tables/{table['id']}")


def count_answers(report: Path) -> Counter[tuple[str, int]]:
    """Return the number of requests in the report by (operation, status)."""
    log = json.loads(report.read_text())["log"]["entries"]
    counts: Counter[tuple[str, int]] = Counter()
    for entry in log:
        path = re.sub(r"^/v1/(models|tables|jobs)/[^/]*", r"/v1/\1/{}", urlsplit(entry["request"]["url"]).path)
        counts[f"{entry['request']['method']} {path}", entry["response"]["status"]] += 1
    return counts


def show(counts: Counter[tuple[str, int]]) -> None:
    """Print a line per operation, one for all unknown addresses, and the total."""
    lines: dict[str, Counter[int]] = defaultdict(Counter)
    for (operation, status), n in counts.items():
        real = any(counts[operation, other] for other in range(200, 300))
        lines[operation if real or status not in (404, 405) else "no such address or method"][status] += n
    for operation, statuses in sorted(lines.items()):
        good, total = sum(n for status, n in statuses.items() if status < 300), sum(statuses.values())
        text = ", ".join(f"{status} {n:,} times" for status, n in sorted(statuses.items()))
        print(f"  {operation}: {good / total:.0%} of {total:,} 2xx ({text})")
    good = sum(n for (_, status), n in counts.items() if status < 300)
    print(f"all: {good:,} of {counts.total():,} 2xx ({good / counts.total():.0%})")


def at_the_limits(http: httpx.Client, table: str) -> None:
    """Send the longest lists that a fit accepts, which schemathesis does not generate, and lists one longer."""
    for field, more in (("drop", 0), ("types", 0), ("drop", 1), ("types", 1)):
        names = [f"{i:05d}{'x' * 95}" for i in range(5000 + more)]
        body = {"table": table, field: names if field == "drop" else dict.fromkeys(names, "numeric")}
        answer = http.post("/v1/fits", json=body)
        expected = 422 if more else 400  # valid, but the table has no such column
        assert answer.status_code == expected, (answer.status_code, answer.text[:300])
        assert len(answer.content) < 10_000, len(answer.content)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--max-examples", type=int, default=100)
    parser.add_argument("--phases", default="examples,coverage,fuzzing,stateful")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--har", type=Path, help="write all requests and answers to this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        PTAD(config=TINY, drop=["state"], verbose=0, device="cpu").fit(real_table()).save(folder / "model")
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
                names = fill_store(http)
                at_the_limits(http, names["tables"][0])
                operations = sum(len(methods) for methods in http.get("/openapi.json").json()["paths"].values())
            (folder / "schemathesis.toml").write_text(settings(names))
            (folder / "names.json").write_text(json.dumps(names))
            memory = psutil.Process(service.pid).memory_info().rss
            run = [str(BIN / "schemathesis"), "run", f"{url}/openapi.json", "--checks", CHECKS, "--no-color"]
            run += ["--max-examples", str(options.max_examples), "--seed", str(options.seed)]
            run += ["--phases", options.phases, "--request-timeout", "60", "--continue-on-failure"]
            stop = threading.Event()
            threading.Thread(target=make_room, args=(url, names, stop), daemon=True).start()
            result = subprocess.run([*run, "--report-har-path", "requests.har"], cwd=folder, check=False)
            stop.set()
            counts = count_answers(folder / "requests.har")
            if options.har is not None:
                shutil.copy(folder / "requests.har", options.har)
            print(f"{operations} operations, {counts.total():,} requests")
            show(counts)
            now = psutil.Process(service.pid).memory_info().rss
            print(f"memory of the service {memory / 2**20:.0f} MiB before, {now / 2**20:.0f} MiB after")
            wrong = [status for _, status in counts if status >= 500 and status not in (503, 507)]
            print(
                f"answers 5xx: {wrong or 'none'}; 'unexpected' in the log: {log.read_text().count('unexpected')} times"
            )
        finally:
            service.send_signal(signal.SIGTERM)
            print(f"the service ended with {service.wait(60)}")
        sys.exit(result.returncode or bool(wrong))


if __name__ == "__main__":
    main()
