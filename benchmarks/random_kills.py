"""Kill what works (kill -9) at random moments, and compare what is left with a run that nobody killed.

    python benchmarks/random_kills.py [--kills 100] [--only service,worker,fit,score,update,sqlite,postgres,...]

The kills are divided among the targets. A kill that finds nothing at work is not counted and tried again. After each
one there has to be the old state or the new one, whole; the same command again, or the restarted service, has to end
with the result of the unkilled run and leave nothing else behind. Needs the extras torch, sql and ray, and for
`postgres` and `postgres-server` PostgreSQL's programs; what is not there is skipped and named.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
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
from places import Place, postgres_place, sqlite_place
from postgres_server import PostgresServer, why_not
from service_kills import kill_service

from ptad import PTAD

PTAD_COMMAND = [sys.executable, "-m", "ptad"]
KEYS = "SELECT key, score FROM scored ORDER BY key"
say = partial(print, flush=True)


@dataclass
class Tally:
    """What kills of one target left behind."""

    wanted: int
    kills: int = 0
    before: int = 0
    after: int = 0
    seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)

    def count(self, found: str) -> None:
        """Count a kill after which the state was ``before``, ``after`` or something else."""
        self.kills += 1
        say(f"kill {self.kills} of {self.wanted}: {found}")
        self.before += found == "before"
        self.after += found == "after"
        if found not in ("before", "after"):
            self.complain(found)

    def complain(self, what: str) -> None:
        """Keep and say what is wrong."""
        self.wrong.append(what)
        say(f"WRONG: {what}")


def make_rows(n: int, seed: int) -> pa.Table:
    """Three numbers, two of which belong together, and a key."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    columns = {"a": a, "b": 2 * a + 0.1 * rng.normal(size=n), "c": rng.integers(0, 9, n)}
    return pa.table({"key": np.arange(n), **columns})


def run(folder: Path, *command: str) -> None:
    """Run a command of ptad that nobody kills."""
    done = subprocess.run([*PTAD_COMMAND, *command], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"ptad {' '.join(command)}: {done.stdout}{done.stderr}")


def model_scores(folder: Path) -> list[float]:
    """Scores of a few rows with a model; that it opens at all is half of the check."""
    found: list[float] = PTAD.load(folder).anomaly_score(make_rows(50, 9)).tolist()
    return found


def contents(folder: Path) -> set[str]:
    """All files and folders in a folder but the inside of models."""
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if "model" not in p.relative_to(folder).parts[:-1]}


@dataclass
class Command:
    """A command that is killed: how its start is set up, and what state its outcome is in."""

    folder: Path
    arguments: list[str]
    restore: Callable[[], object]
    state: Callable[[], Any]
    kill: Callable[[subprocess.Popen[bytes]], None] = subprocess.Popen.kill

    def kill_often(self, tally: Tally, chance: random.Random) -> None:
        """Kill it at random moments, half of them in the last quarter, where results are written."""
        self.restore()
        before, started = self.state(), time.perf_counter()
        run(self.folder, *self.arguments)
        seconds, after, files = time.perf_counter() - started, self.state(), contents(self.folder)
        assert before != after, "the command changes nothing that could be seen"
        while tally.kills < tally.wanted:
            self.restore()
            process = subprocess.Popen([*PTAD_COMMAND, *self.arguments], cwd=self.folder, stderr=subprocess.DEVNULL)
            time.sleep(seconds * chance.uniform(*chance.choice([(0.0, 1.0), (0.75, 1.0)])))
            if process.poll() is not None:  # it was faster than the first time
                seconds *= 0.9
                continue
            self.kill(process)
            process.wait()
            try:
                found = self.state()
            except Exception as error:
                found = f"{type(error).__name__}: {error}"
            tally.count("before" if found == before else "after" if found == after else f"neither old nor new: {found}")
            run(self.folder, *self.arguments)
            if self.state() != after:
                tally.complain("the same command again gave another result")
            if left := contents(self.folder) - files:
                tally.complain(f"left behind: {sorted(left)}")


def model_command(home: Path, verb: str) -> Command:
    """``fit`` or ``update`` over a model that is there."""
    shutil.copytree(home / "model", home / verb / "model")
    inputs = ["new.csv"] if verb == "fit" else [str(home / "model"), "new.csv"]

    def restore() -> None:
        shutil.rmtree(home / verb / "model")
        shutil.copytree(home / "model", home / verb / "model")

    options = ["--out", "model", "--quiet", *(["--drop", "key"] if verb == "fit" else [])]
    return Command(home / verb, [verb, *inputs, *options], restore, lambda: model_scores(home / verb / "model"))


def score_command(home: Path) -> Command:
    """``score --out`` over a file that is there."""
    folder, out = home / "score", home / "score" / "scored.csv"
    arguments = ["score", str(home / "model"), "rows.csv", "--out", "scored.csv", "--quiet"]
    return Command(folder, arguments, partial(out.write_text, "old"), out.read_bytes)


def database_command(home: Path, name: str, place: Place, kill: Any = subprocess.Popen.kill) -> Command:
    """``score --into`` over a table that is there."""

    def restore() -> None:
        place.run("DROP TABLE IF EXISTS scored")
        place.run("CREATE TABLE scored (key INTEGER, score DOUBLE PRECISION)")
        place.run("INSERT INTO scored VALUES (1, 0.5)")

    arguments = ["score", str(home / "model"), "rows.csv", "--db", place.uri, "--into", "scored", "--replace"]
    state = lambda: (place.tables(), place.run(KEYS))  # noqa: E731
    return Command(home / name, [*arguments, "--quiet"], restore, state, kill)


def kill_ray_workers(home: Path, tally: Tally, chance: random.Random) -> None:
    """Kill workers of a cluster on this machine while they score, several in each job."""
    folder, jobs = home / "ray", 0
    model, rows = str(home / "model"), str(folder / "rows.parquet")
    parquet.write_table(make_rows(300_000, 2), rows)
    run(folder, "score", model, rows, "--out", "alone.parquet", "--quiet")
    expected = parquet.read_table(folder / "alone.parquet")
    while tally.kills < tally.wanted:
        jobs += 1
        out = folder / f"scored{jobs}"
        command = [*PTAD_COMMAND, "score", model, rows, "--engine", "ray", "--out", str(out), "--quiet"]
        with (folder / "log").open("w") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        while process.poll() is None:
            time.sleep(chance.uniform(0.2, 4.0))
            workers = [p for p in psutil.Process(process.pid).children(recursive=True) if is_scoring(p)]
            if workers and tally.kills < tally.wanted and process.poll() is None:
                chance.choice(workers).kill()
                tally.count("after")  # the job goes on: what it ends with is compared below
        if process.returncode:
            tally.complain(f"the job ended with {process.returncode}: {(folder / 'log').read_text()[-500:]}")
            continue
        found = pa.concat_tables(parquet.read_table(part) for part in sorted(out.glob("part-*")))
        if not found.equals(expected):
            tally.complain("rows differ from those of one process")
        if others := {p.name for p in out.iterdir() if not p.name.startswith("part-")} - {"_SUCCESS", "_ptad.json"}:
            tally.complain(f"left behind: {sorted(others)}")
        if jobs > tally.wanted + 3:
            raise SystemExit("jobs are too short for kills")


def is_scoring(process: psutil.Process) -> bool:
    """Whether a process is a worker of the cluster that scores."""
    try:
        return "ray::Map" in " ".join(process.cmdline())
    except psutil.Error:
        return False


def targets(home: Path, only: str, servers: list[PostgresServer]) -> dict[str, Callable[[Tally, random.Random], None]]:
    """What can be killed here, by its name; a server of PostgreSQL is started if it is wanted."""
    found: dict[str, Callable[[Tally, random.Random], None]] = {
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
        servers.append(server)

        def kill_server(client: subprocess.Popen[bytes]) -> None:
            server.kill()
            client.wait()
            server.start()

        place = postgres_place(server)
        found["postgres"] = database_command(home, "postgres", place).kill_often
        found["postgres-server"] = database_command(home, "postgres-server", place, kill_server).kill_often
    else:
        say(f"skipped: postgres, postgres-server: {reason}")
    if find_spec("ray"):
        found["ray"] = partial(kill_ray_workers, home)
    else:
        say("skipped: ray is not installed")
    return found


def prepare(home: Path) -> None:
    """Folders, tables and a model."""
    home.chmod(0o755)  # PostgreSQL runs as another user
    csv.write_csv(make_rows(2000, 0), home / "train.csv")
    run(home, "fit", "train.csv", "--out", "model", "--drop", "key", "--quiet")
    for name in (
        "service",
        "worker",
        "fit",
        "score",
        "update",
        "sqlite",
        "postgres",
        "postgres-server",
        "server",
        "ray",
    ):
        (home / name).mkdir()
        csv.write_csv(make_rows(20_000, 1), home / name / "rows.csv")
        csv.write_csv(make_rows(1000, 3), home / name / "new.csv")
    sqlite3.connect(home / "sqlite" / "shop.db").close()


def main() -> None:
    """Kill, compare, print one table; exit code 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--only", default="", help="targets, separated by commas")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    os.environ.update(OMP_NUM_THREADS="1", RAY_USAGE_STATS_ENABLED="0")
    chance, tallies, servers = random.Random(options.seed), {}, list[PostgresServer]()
    with tempfile.TemporaryDirectory(prefix="ptad-kills-") as work:
        prepare(Path(work))
        try:
            found = targets(Path(work), options.only, servers)
            names = options.only.split(",") if options.only else list(found)
            for i, name in enumerate(names):
                tally = tallies[name] = Tally(options.kills // len(names) + (i < options.kills % len(names)))
                started = time.perf_counter()
                found[name](tally, chance)
                tally.seconds = time.perf_counter() - started
                say(f"{name}: {tally.kills} kills, {len(tally.wrong)} wrong, {tally.seconds:.0f} s")
        except KeyboardInterrupt:
            say("interrupted: what was counted so far")
        finally:
            for server in servers:
                server.stop()
    say("\n| killed | kills | found as before | found complete | wrong | seconds |\n|---|---|---|---|---|---|")
    for name, t in tallies.items():
        say(f"| {name} | {t.kills} | {t.before} | {t.after} | {len(t.wrong)} | {t.seconds:.0f} |")
    wrong = sum(len(t.wrong) for t in tallies.values())
    say(f"{sum(t.kills for t in tallies.values())} kills, {wrong} wrong")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
