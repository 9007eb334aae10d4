"""Fuzz test of the service: schemathesis makes requests to every address and method from the OpenAPI description.

    python benchmarks/fuzz_requests.py [--max-examples 100] [--phases examples,coverage,fuzzing,stateful]

Names of real models, tables and jobs are mixed in, so that not all of them end at "there is no such thing", and rows,
files and settings that fit them (``fuzz_values.py``); what may be deleted or cancelled is kept apart from what is
asked. Prints the counts and the share of answers 2xx; fails at an answer 5xx that is not 503 or 507.
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
from fuzz_values import COLOURS, NUMBERS, written

from ptad import PTAD

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
TINY = {"reference.rows": 100, "calibration.folds": 10}
BIN = Path(sys.executable).parent


def real_table() -> pa.Table:
    rng = np.random.default_rng(0)
    columns = {name: pa.array(rng.normal(size=200)) for name in NUMBERS}
    return pa.table(
        columns | {"colour": rng.choice(COLOURS, 200), "state": np.where(rng.random(200) < 0.1, "bad", "ok")}
    )


def filled(http: httpx.Client) -> dict[str, list[str]]:
    """Make tables, models and jobs; those to be deleted are others than those to be asked."""
    tables = []
    content = written(real_table(), "csv")
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


def impatient(url: str, names: dict[str, list[str]], over: threading.Event) -> None:
    """Keep room for more: cancel what has waited or run for a few seconds, and delete tables beyond the first 100.

    The stream of events of a job, which is asked for as well, ends with it.
    """
    with httpx.Client(base_url=url, timeout=120) as http:
        while not over.wait(0.5):
            for job in http.get("/v1/jobs").json():
                age = time.time() - (job["started"] or job["created"])
                if (job["state"] == "waiting" and age > 6) or (job["state"] == "running" and age > 8):
                    http.post(f"/v1/jobs/{job['id']}/cancel")
            for table in http.get("/v1/tables").json()[100:]:
                if table["id"] not in names["tables"] + names["doomed-tables"]:
                    http.delete(f"/v1/tables/{table['id']}")


def counted(report: Path) -> Counter[tuple[str, int]]:
    """(operation, status) of every request in the report."""
    log = json.loads(report.read_text())["log"]["entries"]
    found: Counter[tuple[str, int]] = Counter()
    for entry in log:
        path = re.sub(r"^/v1/(models|tables|jobs)/[^/]*", r"/v1/\1/{}", urlsplit(entry["request"]["url"]).path)
        found[f"{entry['request']['method']} {path}", entry["response"]["status"]] += 1
    return found


def show(found: Counter[tuple[str, int]]) -> None:
    """Print a line per operation, all that there are not in one, and the whole."""
    lines: dict[str, Counter[int]] = defaultdict(Counter)
    for (operation, status), n in found.items():
        real = any(found[operation, other] for other in range(200, 300))
        lines[operation if real or status not in (404, 405) else "no such address or method"][status] += n
    for operation, statuses in sorted(lines.items()):
        good, total = sum(n for status, n in statuses.items() if status < 300), sum(statuses.values())
        said = ", ".join(f"{status} {n:,} times" for status, n in sorted(statuses.items()))
        print(f"  {operation}: {good / total:.0%} of {total:,} 2xx ({said})")
    good = sum(n for (_, status), n in found.items() if status < 300)
    print(f"all: {good:,} of {found.total():,} 2xx ({good / found.total():.0%})")


def at_the_limits(http: httpx.Client, table: str) -> None:
    """The longest lists that a fit takes, which schemathesis does not make, and the first that are too long."""
    for field, more in (("drop", 0), ("types", 0), ("drop", 1), ("types", 1)):
        listed = [f"{i:05d}{'x' * 95}" for i in range(5000 + more)]
        body = {"table": table, field: listed if field == "drop" else dict.fromkeys(listed, "numeric")}
        answer = http.post("/v1/fits", json=body)
        expected = 422 if more else 400  # in form, but the table has no such column
        assert answer.status_code == expected, (answer.status_code, answer.text[:300])
        assert len(answer.content) < 10_000, len(answer.content)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--max-examples", type=int, default=100)
    parser.add_argument("--phases", default="examples,coverage,fuzzing,stateful")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--har", type=Path, help="keep all requests and answers in this file")
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
                names = filled(http)
                at_the_limits(http, names["tables"][0])
                operations = sum(len(methods) for methods in http.get("/openapi.json").json()["paths"].values())
            (folder / "schemathesis.toml").write_text(settings(names))
            (folder / "names.json").write_text(json.dumps(names))
            memory = psutil.Process(service.pid).memory_info().rss
            run = [str(BIN / "schemathesis"), "run", f"{url}/openapi.json", "--checks", CHECKS, "--no-color"]
            run += ["--max-examples", str(options.max_examples), "--seed", str(options.seed)]
            run += ["--phases", options.phases, "--request-timeout", "60", "--continue-on-failure"]
            over = threading.Event()
            threading.Thread(target=impatient, args=(url, names, over), daemon=True).start()
            done = subprocess.run([*run, "--report-har-path", "requests.har"], cwd=folder, check=False)
            over.set()
            found = counted(folder / "requests.har")
            if options.har is not None:
                shutil.copy(folder / "requests.har", options.har)
            print(f"{operations} operations, {found.total():,} requests")
            show(found)
            now = psutil.Process(service.pid).memory_info().rss
            print(f"memory of the service {memory / 2**20:.0f} MiB before, {now / 2**20:.0f} MiB after")
            wrong = [status for _, status in found if status >= 500 and status not in (503, 507)]
            print(
                f"answers 5xx: {wrong or 'none'}; 'unexpected' in the log: {log.read_text().count('unexpected')} times"
            )
        finally:
            service.send_signal(signal.SIGTERM)
            print(f"the service ended with {service.wait(60)}")
        sys.exit(done.returncode or bool(wrong))


if __name__ == "__main__":
    main()
