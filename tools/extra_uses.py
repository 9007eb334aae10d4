"""One real use of each extra, run where only ptad with that extra is installed: ``python extra_uses.py EXTRA``."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from ptad import PTAD

TESTS = Path(__file__).parents[1] / "tests"
#: What a page or a module refers to: a script, a style, another module.
REFERENCE = re.compile(r'(?:src|href)="([^"]+)"|^(?:import|export) [^;]*?[\'"](\./[^\'"]+)[\'"];', re.MULTILINE)


def ptad(*command: str) -> str:
    """Run a command of ptad and return what it prints."""
    program = str(Path(sys.executable).with_name("ptad"))
    return subprocess.run([program, *command], check=True, stdout=subprocess.PIPE, text=True).stdout


def make_rows(n: int = 300) -> pa.Table:
    """Return a table of two columns, one twice the other."""
    a = np.random.default_rng(0).normal(size=n)
    return pa.table({"a": a, "b": 2 * a})


def model() -> PTAD:
    """Fit the default preset; save the model, and its rows as CSV and Parquet."""
    csv.write_csv(make_rows(), "rows.csv")
    parquet.write_table(make_rows(), "rows.parquet")
    fitted = PTAD(verbose=0).fit(make_rows())
    fitted.save("model")
    return fitted


def torch() -> str:
    """The ``paper`` preset with a tiny network."""
    sizes = {"embedding_dim": 4, "n_heads": 1, "abd_width": 8, "n_steps": 100, "interval": 5, "batch_size": 64}
    config = {f"network.{name}": value for name, value in sizes.items()} | {"calibration.folds": 2}
    config["calibration.most_folds"] = 2
    scores = PTAD(preset="paper", config=config, verbose=0).fit(make_rows()).anomaly_score(make_rows())
    assert np.isfinite(scores).all()
    return f"preset paper fitted, {len(scores)} rows scored"


def plot() -> str:
    """A figure as a file."""
    model().plot.scores(make_rows()).figure.savefig("scores.png")
    return f"figure of {Path('scores.png').stat().st_size:,} bytes"


def pyod() -> str:
    """The adapter, and PyOD's own attributes."""
    from ptad.pyod import PTADDetector

    x = np.column_stack([make_rows()["a"], make_rows()["b"]])
    detector = PTADDetector().fit(x)
    assert detector.predict(np.array([[0.0, 0.0], [9.0, -9.0]])).tolist() == [0, 1]
    return f"threshold {detector.threshold_:.3f}"


def excel() -> str:
    """A workbook, with the scores of the same table in Arrow."""
    sys.path.append(str(TESTS))
    from workbooks import write_xlsx

    table = make_rows().to_pydict()
    write_xlsx(Path("rows.xlsx"), {"rows": [list(table), *zip(*table.values(), strict=True)]})
    ptad("fit", "rows.xlsx", "--out", "model", "--quiet")
    assert np.array_equal(PTAD.load("model").anomaly_score(make_rows()), model().anomaly_score(make_rows()))
    return "workbook fitted, with the scores of the table"


def crawl(address: str) -> dict[str, int]:
    """Fetch the pages and every file that they refer to, from file to file; return their sizes by path."""
    sizes: dict[str, int] = {}
    waiting = ["/", "/docs", "/health", "/openapi.json"]
    while waiting:
        path = waiting.pop()
        if path in sizes:
            continue
        with urllib.request.urlopen(address + path) as response:  # raises for an HTTP error
            text = response.read().decode()
        sizes[path] = len(text)
        if path.endswith((".json", "health")):
            continue
        for reference in REFERENCE.finditer(text):
            target = urllib.parse.urljoin(path, reference[1] or reference[2])
            if target.endswith((".js", ".css")):
                waiting.append(target)
    return sizes


def serve() -> str:
    """The service, its pages and every file that they refer to."""
    program = [str(Path(sys.executable).with_name("ptad")), "serve", "--port", "0", "--store", "store"]
    with Path("log").open("w") as log:
        process = subprocess.Popen(program, stderr=log)
    try:
        while "ready:" not in (messages := Path("log").read_text()):
            assert process.poll() is None, messages
            time.sleep(0.1)
        sizes = crawl(re.findall(r"http://\S+", messages)[0].rstrip("/"))
    finally:
        process.terminate()
        process.wait(60)
    assert all(sizes.values()), sizes
    return f"{len(sizes)} addresses answered, {sum(path.startswith('/page/') for path in sizes)} files of the page"


def bench() -> str:
    """One cell of a collection of one table."""
    Path("tables").mkdir()
    table = make_rows().append_column("label", pa.array([0] * 280 + [1] * 20))
    csv.write_csv(table, "tables/small.csv")
    ptad("benchmark", "run", "--collection", "tables", "--label", "label", "--methods", "knn", "--out", "cells.csv")
    cells = csv.read_csv("cells.csv").to_pylist()
    assert cells and all(cell["status"] == "ok" for cell in cells), cells
    return f"{len(cells)} cells, AUC-ROC {cells[0]['auc_roc']:.3f}"


def sql() -> str:
    """Fit from a query, scores into a table: SQLite and DuckDB."""
    model()
    ptad("fit", "--db", "duckdb://", "--query", "SELECT * FROM 'rows.csv'", "--out", "model", "--quiet")
    with sqlite3.connect("shop.db") as database:
        database.execute("CREATE TABLE empty (a)")
    ptad("score", "model", "rows.csv", "--db", "sqlite:///shop.db", "--into", "scored", "--quiet")
    (count,) = sqlite3.connect("shop.db").execute("SELECT count(score) FROM scored").fetchone()
    assert count == 300
    import adbc_driver_postgresql.dbapi  # without a server, its import only  # noqa: F401

    return f"fitted from DuckDB, {count} scores in SQLite; the driver of PostgreSQL can be imported"


def ray() -> str:
    """A table scored on a local cluster."""
    scores = model().anomaly_score(make_rows())
    ptad("score", "model", "rows.parquet", "--engine", "ray", "--out", "scored", "--quiet")
    scored = pa.concat_tables(parquet.read_table(part) for part in sorted(Path("scored").glob("part-*")))
    assert np.array_equal(scored["score"].to_numpy(), scores)
    return f"{scored.num_rows} rows, with the scores of one process"


def onnx() -> str:
    """A model exported, and the file run."""
    from ptad.export.runner import Runner

    scores = model().anomaly_score(make_rows())
    ptad("export", "model", "--out", "model.onnx", "--quiet")
    exported = Runner("model.onnx").score(make_rows()).score
    assert np.allclose(exported, scores, rtol=1e-6)
    return f"exported and run: {len(exported)} scores equal to 1e-6"


USES = {use.__name__: use for use in (torch, plot, pyod, excel, serve, bench, sql, ray, onnx)}

if __name__ == "__main__":
    sys.stdout.write(USES[sys.argv[1]]() + "\n")
