"""One real use of each extra, run where only ptad with that extra is installed: ``python extra_uses.py EXTRA``."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
import time
import urllib.request
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from ptad import PTAD

SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def ptad(*command: str) -> str:
    """Run a command of ptad and return what it prints."""
    program = str(Path(sys.executable).with_name("ptad"))
    return subprocess.run([program, *command], check=True, stdout=subprocess.PIPE, text=True).stdout


def make_rows(n: int = 300) -> pa.Table:
    """Two columns that belong together."""
    a = np.random.default_rng(0).normal(size=n)
    return pa.table({"a": a, "b": 2 * a})


def model() -> PTAD:
    """A model of the default preset, also as a folder, with its rows beside it."""
    csv.write_csv(make_rows(), "rows.csv")
    parquet.write_table(make_rows(), "rows.parquet")
    fitted = PTAD(verbose=0).fit(make_rows())
    fitted.save("model")
    return fitted


def torch() -> str:
    """The paper's network, tiny."""
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
    """A workbook written by hand: one sheet, two columns of numbers."""
    lines = [("a", "b"), *zip(*make_rows().to_pydict().values(), strict=True)]
    cell = "<c><v>{}</v></c>".format
    head = "".join(f'<c t="inlineStr"><is><t>{name}</t></is></c>' for name in lines[0])
    rows = f"<row>{head}</row>" + "".join(f"<row>{''.join(map(cell, line))}</row>" for line in lines[1:])
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    files = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="rels" ContentType='
        '"application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/xl/workbook.xml" ContentType='
        f'"{kind}.sheet.main+xml"/><Override PartName="/xl/sheet.xml" ContentType="{kind}.worksheet+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="r" Type='
        f'"{OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="s" Type='
        f'"{OFFICE}/worksheet" Target="sheet.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{SHEET}" xmlns:r="{OFFICE}"><sheets><sheet name="rows" sheetId="1" '
        'r:id="s"/></sheets></workbook>',
        "xl/sheet.xml": f'<worksheet xmlns="{SHEET}"><sheetData>{rows}</sheetData></worksheet>',
    }
    with zipfile.ZipFile("rows.xlsx", "w") as workbook:
        for name, text in files.items():
            workbook.writestr(name, text)
    ptad("fit", "rows.xlsx", "--out", "model", "--quiet")
    assert np.array_equal(PTAD.load("model").anomaly_score(make_rows()), model().anomaly_score(make_rows()))
    return "workbook fitted, with the scores of the table"


def serve() -> str:
    """The service answers."""
    program = [str(Path(sys.executable).with_name("ptad")), "serve", "--port", "0"]
    with Path("log").open("w") as log:
        process = subprocess.Popen(program, stderr=log)
    try:
        while "ready:" not in (said := Path("log").read_text()):
            assert process.poll() is None, said
            time.sleep(0.1)
        with urllib.request.urlopen(re.findall(r"http://\S+", said)[0].rstrip("/") + "/health") as answer:
            return f"GET /health: {json.load(answer)}"
    finally:
        process.terminate()
        process.wait(60)


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
    import adbc_driver_postgresql.dbapi  # a server is not at hand: only that the driver is there  # noqa: F401

    return f"fitted from DuckDB, {count} scores in SQLite; the driver of PostgreSQL can be imported"


def ray() -> str:
    """A table scored on a cluster of this machine."""
    scores = model().anomaly_score(make_rows())
    ptad("score", "model", "rows.parquet", "--engine", "ray", "--out", "scored", "--quiet")
    found = pa.concat_tables(parquet.read_table(part) for part in sorted(Path("scored").glob("part-*")))
    assert np.array_equal(found["score"].to_numpy(), scores)
    return f"{found.num_rows} rows, with the scores of one process"


def onnx() -> str:
    """Export a model, run the file."""
    from ptad.export.runner import Runner

    scores = model().anomaly_score(make_rows())
    ptad("export", "model", "--out", "model.onnx", "--quiet")
    found = Runner("model.onnx").score(make_rows()).score
    assert np.allclose(found, scores, rtol=1e-6)
    return f"exported and run: {len(found)} scores equal to 1e-6"


USES = {use.__name__: use for use in (torch, plot, pyod, excel, serve, bench, sql, ray, onnx)}

if __name__ == "__main__":
    sys.stdout.write(USES[sys.argv[1]]() + "\n")
