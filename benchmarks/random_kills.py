"""Kill processes (kill -9) at random moments, and compare the result with an undisturbed run.

    python benchmarks/random_kills.py [--kills 100] [--only service,worker,fit,score,update,sqlite,postgres,...]

The kills are divided among the targets. Their times are drawn from the file operations of the process (`moments.py`),
not from a clock, so that they come in the middle of the work on any machine. After each one the state has to be the
complete old or the complete new one; the same command again, or the restarted service, has to end with the result of
the undisturbed run and leave no other files behind. The table is printed at the end and written as JSON to the file
`--out`, which is updated after every target. Needs the extras torch, sql, ray and serve, and PostgreSQL's programs for
`postgres` and `postgres-server`; targets whose programs are missing are skipped and listed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
from pyarrow import csv, parquet

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "databases"))
from command_kills import PTAD_COMMAND, TRIES_PER_KILL, Command, run
from places import Place, postgres_place, sqlite_place
from postgres_server import PostgresServer, why_not
from service_kills import kill_service

from ptad import PTAD

RAY_ROWS, RAY_PARTS = 300_000, 10  # rows of the job, and its parts for every kill, about
KEYS = "SELECT key, score FROM scored ORDER BY key"
show = partial(print, flush=True)


@dataclass
class Tally:
    """Kills of one target: planned and done, states found after them, and what was wrong."""

    planned: int
    kills: int = 0
    before: int = 0
    after: int = 0
    seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)

    def count(self, state: str) -> None:
        """Count a kill after which the state was ``before``, ``after``, or described otherwise."""
        self.kills += 1
        show(f"kill {self.kills} of {self.planned}: {state}")
        self.before += state == "before"
        self.after += state == "after"
        if state not in ("before", "after"):
            self.complain(state)

    def complain(self, what: str) -> None:
        """Record and print something wrong."""
        self.wrong.append(what)
        show(f"WRONG: {what}")


def make_rows(n: int, seed: int) -> pa.Table:
    """Return three numbers, two of which are correlated, and a key."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    columns = {"a": a, "b": 2 * a + 0.1 * rng.normal(size=n), "c": rng.integers(0, 9, n)}
    return pa.table({"key": np.arange(n), **columns})


def model_scores(folder: Path) -> list[float]:
    """Load a model and return its scores of a few rows."""
    scores: list[float] = PTAD.load(folder).anomaly_score(make_rows(50, 9)).tolist()
    return scores


def model_command(home: Path, verb: str) -> Command:
    """Return ``fit`` or ``update`` over an existing model."""
    shutil.copytree(home / "model", home / verb / "model")
    inputs = ["new.csv"] if verb == "fit" else [str(home / "model"), "new.csv"]

    def restore() -> None:
        shutil.rmtree(home / verb / "model")
        shutil.copytree(home / "model", home / verb / "model")

    options = ["--out", "model", "--quiet", *(["--drop", "key"] if verb == "fit" else [])]
    return Command(home / verb, [verb, *inputs, *options], restore, lambda: model_scores(home / verb / "model"))


def score_command(home: Path) -> Command:
    """Return ``score --out`` over an existing file."""
    folder, out = home / "score", home / "score" / "scored.csv"
    arguments = ["score", str(home / "model"), "rows.csv", "--out", "scored.csv", "--quiet"]
    return Command(folder, arguments, partial(out.write_text, "old"), out.read_bytes)


def database_command(home: Path, name: str, place: Place, kill: Any = subprocess.Popen.kill) -> Command:
    """Return ``score --into`` over an existing table."""

    def restore() -> None:
        place.run("DROP TABLE IF EXISTS scored")
        place.run("CREATE TABLE scored (key INTEGER, score DOUBLE PRECISION)")
        place.run("INSERT INTO scored VALUES (1, 0.5)")

    arguments = ["score", str(home / "model"), "rows.csv", "--db", place.uri, "--into", "scored", "--replace"]
    state = lambda: (place.tables(), place.run(KEYS))  # noqa: E731
    return Command(home / name, [*arguments, "--quiet"], restore, state, kill)


def kill_ray_workers(home: Path, tally: Tally, chance: random.Random) -> None:
    """Kill workers of a cluster on this machine while they score, if possible all in one job."""
    folder, step = home / "ray", RAY_ROWS // (RAY_PARTS * (tally.planned + 1))
    model, rows = str(home / "model"), str(folder / "rows.parquet")
    parquet.write_table(make_rows(RAY_ROWS, 2), rows)
    run(folder, "score", model, rows, "--out", "alone.parquet", "--quiet")
    expected = parquet.read_table(folder / "alone.parquet")
    for i in range(TRIES_PER_KILL):
        if tally.kills == tally.planned:
            break
        out, log = folder / f"scored{i}", folder / f"log{i}"
        options = ["--engine", "ray", "--out", str(out), "--batch-rows", str(step), "--quiet"]
        with log.open("w") as file:
            process = subprocess.Popen([*PTAD_COMMAND, "score", model, rows, *options], stdout=file, stderr=file)
        next_kill = 0  # when so many parts are written
        while process.poll() is None:
            time.sleep(0.05)
            done = len(list(out.glob("part-*")))
            if done < next_kill or tally.kills == tally.planned:
                continue
            workers = [p for p in psutil.Process(process.pid).children(recursive=True) if is_scoring(p)]
            if workers and process.poll() is None:
                chance.choice(workers).kill()
                tally.count("after")  # the job continues: its result is compared below
                next_kill = done + chance.randint(1, RAY_PARTS)
        if process.returncode:
            tally.complain(f"the job ended with {process.returncode}: {log.read_text()[-500:]}")
            continue
        scores = pa.concat_tables(parquet.read_table(part) for part in sorted(out.glob("part-*")))
        if not scores.equals(expected):
            tally.complain("rows differ from those of one process")
        if others := {p.name for p in out.iterdir() if not p.name.startswith("part-")} - {"_SUCCESS", "_ptad.json"}:
            tally.complain(f"left behind: {sorted(others)}")


def is_scoring(process: psutil.Process) -> bool:
    """Return whether a process is a worker of the cluster that scores."""
    try:
        return "ray::Map" in " ".join(process.cmdline())
    except psutil.Error:
        return False


def targets(
    home: Path, only: str, stack: ExitStack, skipped: dict[str, str]
) -> dict[str, Callable[[Tally, random.Random], None]]:
    """Return the targets by name; a PostgreSQL server is started if it is needed."""
    available: dict[str, Callable[[Tally, random.Random], None]] = {
        "service": partial(kill_service, home / "service", worker=False),
        "worker": partial(kill_service, home / "worker", worker=True),
        "fit": model_command(home, "fit").kill_often,
        "score": score_command(home).kill_often,
        "update": model_command(home, "update").kill_often,
        "sqlite": database_command(home, "sqlite", sqlite_place(home / "sqlite" / "shop.db")).kill_often,
    }
    if only and "postgres" not in only:
        pass
    elif (reason := why_not()) is None:
        server = PostgresServer(home / "server")
        stack.callback(server.stop)

        def kill_server(client: subprocess.Popen[bytes]) -> None:
            server.kill()
            client.send_signal(signal.SIGCONT)
            client.wait()
            server.start()

        place = postgres_place(server)
        available["postgres"] = database_command(home, "postgres", place).kill_often
        available["postgres-server"] = database_command(home, "postgres-server", place, kill_server).kill_often
    else:
        skipped |= {"postgres": reason, "postgres-server": reason}
    if find_spec("ray"):
        available["ray"] = partial(kill_ray_workers, home)
    else:
        skipped["ray"] = "it is not installed"
    return available


def prepare(home: Path) -> None:
    """Write the folders, tables and the model that the targets need."""
    home.chmod(0o755)  # PostgreSQL runs as another user
    csv.write_csv(make_rows(2000, 0), home / "train.csv")
    run(home, "fit", "train.csv", "--out", "model", "--drop", "key", "--quiet")
    names = "service worker fit score update sqlite postgres postgres-server server ray"
    for name in names.split():
        (home / name).mkdir()
        csv.write_csv(make_rows(20_000, 1), home / name / "rows.csv")
        csv.write_csv(make_rows(1000, 3), home / name / "new.csv")
    sqlite3.connect(home / "sqlite" / "shop.db").close()


def summary(tallies: dict[str, Tally], skipped: dict[str, str]) -> dict[str, Any]:
    """Return the results so far, as plain JSON."""
    return {
        "kills": sum(tally.kills for tally in tallies.values()),
        "wrong": sum(len(tally.wrong) for tally in tallies.values()),
        "skipped": skipped,
        "targets": {name: asdict(tally) for name, tally in tallies.items()},
    }


def main() -> None:
    """Kill, compare, print one table and write it as JSON; exit code 1 if anything is wrong or a kill is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--only", default="", help="targets, separated by commas")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("random_kills.json"), help="the table as JSON")
    options = parser.parse_args()
    # Ray must not kill workers because other processes use the memory of the machine
    os.environ.update(OMP_NUM_THREADS="1", RAY_USAGE_STATS_ENABLED="0", RAY_memory_monitor_refresh_ms="0")
    chance, tallies, skipped = random.Random(options.seed), dict[str, Tally](), dict[str, str]()
    with tempfile.TemporaryDirectory(prefix="ptad-kills-") as work, ExitStack() as stack:
        prepare(Path(work))
        available = targets(Path(work), options.only, stack, skipped)
        requested = options.only.split(",") if options.only else list(available)
        if unknown := set(requested) - available.keys() - skipped.keys():
            parser.error(f"there is no target {', '.join(sorted(unknown))}; there are {', '.join(available)}")
        names = [name for name in requested if name in available]
        for i, name in enumerate(names):
            tally = tallies[name] = Tally(options.kills // len(names) + (i < options.kills % len(names)))
            started = time.perf_counter()
            try:
                available[name](tally, chance)
                if tally.kills < tally.planned:
                    tally.complain(f"only {tally.kills} of {tally.planned} kills came before the end")
            except KeyboardInterrupt:
                tally.complain("interrupted")
                break
            except Exception as error:  # the other targets are still tried
                tally.complain(f"{type(error).__name__}: {error}")
            tally.seconds = round(time.perf_counter() - started, 1)
            show(f"{name}: {tally.kills} kills, {len(tally.wrong)} wrong, {tally.seconds:.0f} s")
            options.out.write_text(json.dumps(summary(tallies, skipped), indent=1) + "\n")
    show("\n| killed | kills | found as before | found complete | wrong | seconds |\n|---|---|---|---|---|---|")
    for name, t in tallies.items():
        show(f"| {name} | {t.kills} | {t.before} | {t.after} | {len(t.wrong)} | {t.seconds:.0f} |")
    for name, reason in skipped.items():
        show(f"skipped: {name}: {reason}")
    whole = summary(tallies, skipped)
    options.out.write_text(json.dumps(whole, indent=1) + "\n")
    show(f"{whole['kills']} kills, {whole['wrong']} wrong; {options.out}")
    sys.exit(bool(whole["wrong"]))


if __name__ == "__main__":
    main()
