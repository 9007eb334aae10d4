"""Scoring on two nodes: the rows of the local engine, whatever is killed in between."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from faults import NODE, Saboteur
from typer.testing import CliRunner

from ptad import PTAD
from ptad.cli import app
from ptad.errors import DataError, MissingExtraError, SettingError
from ptad.jobs.ray.connection import connected
from ptad.jobs.ray.plan import make_units, read_unit
from ptad.jobs.ray.scoring import score_on_cluster
from ptad.jobs.score import score_table
from ptad.tables import Query, TableSource, read_table

# what Ray warns of on its own is not ours to mend
pytestmark = pytest.mark.filterwarnings("ignore")
STEP = 100


def test_units_lie_on_one_grid_over_all_files(folder: Path) -> None:
    files = [(str(p), pq.ParquetFile(p).metadata.num_rows) for p in sorted((folder / "parquet").iterdir())]
    units = make_units(files, STEP)
    assert [u.start for u in units] == list(range(0, 1000, STEP)) and sum(u.rows for u in units) == 1000
    assert [n for _, _, n in units[1].slices] == [30, 1, 69]
    schema = pq.read_schema(files[0][0])
    keys = [k for u in units for k in read_unit(u.slices, schema).column("key").to_pylist()]
    assert keys == list(range(1000))
    assert [u.rows for u in make_units([("x", 7)], 3)] == [3, 3, 1]


def test_rows_of_a_large_row_group(tmp_path: Path, folder: Path) -> None:
    table = read_table(folder / "parquet")
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=64)
    for first, count in ((0, 1), (63, 2), (64, 64), (500, 500), (999, 1), (0, 1000)):
        found = read_unit(((str(tmp_path / "t.parquet"), first, count),), table.schema)
        assert found.column("key").to_pylist() == list(range(first, first + count))


def expected_rows(folder: Path, source: str, out: Path, step: int) -> tuple[pa.Table, int | None]:
    summary = score_table(folder / "model", folder / source, out, batch_rows=step, explain=1, device="cpu")
    return read_table(out), summary.anomalies


@pytest.mark.slow
def test_killed_workers_and_nodes_leave_no_trace_and_parts_are_kept(cluster: Any, folder: Path, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"batch_rows": 10, "explain": 1, "device": "cpu"}
    local = score_table(folder / "model", folder / "csv", tmp_path / "local.parquet", **settings)
    expected = read_table(tmp_path / "local.parquet")
    out = tmp_path / "out"
    parts = f"{out}/part-*.parquet"
    worker = cluster.stops.add(parts, 2)  # the first to write its second part dies before it has its name
    node = cluster.stops.add(parts, 10, how="hold")  # and later a whole node, while there is work left
    saboteur = Saboteur(node, lambda: cluster.remove_node(cluster.second, allow_graceful=False))
    saboteur.start()
    try:
        found = score_on_cluster(folder / "model", folder / "csv", out, **settings)
    finally:
        node.release()
        saboteur.join()
        cluster.second = cluster.add_node(**NODE)
    assert worker.pid is not None and node.pid is not None
    assert (found.rows, found.anomalies) == (1000, local.anomalies)
    assert found.cells.to_json() == local.cells.to_json()
    assert read_table(out).equals(expected)  # every row once, in order, with the same types
    names = {p.name for p in out.iterdir()}
    assert names == {"_SUCCESS", "_ptad.json"} | {f"part-{i:015d}.parquet" for i in range(0, 1000, 10)}

    # a second run keeps the parts that are there and makes those that are not
    kept = out / f"part-{300:015d}.parquet"
    before = kept.stat().st_mtime_ns
    (out / f"part-{500:015d}.parquet").unlink()
    again = score_on_cluster(folder / "model", folder / "csv", out, workers=1, **settings)
    assert (again.rows, again.anomalies, again.rows_resumed) == (1000, local.anomalies, 990)
    assert again.cells.to_json() == local.cells.to_json()
    assert kept.stat().st_mtime_ns == before and read_table(out).equals(expected)
    with pytest.raises(SettingError, match="another model, table or setting"):
        score_on_cluster(folder / "model", folder / "csv", out, **{**settings, "batch_rows": 30})


@pytest.mark.slow
def test_the_signs_of_a_table_travel_to_the_workers(cluster: Any, folder: Path, tmp_path: Path) -> None:
    rows = read_table(folder / "parquet").slice(0, 50).to_pylist()
    lines = [";".join(str(v).replace(".", ",") for v in row.values()) for row in rows]
    (tmp_path / "t.csv").write_text("\n".join([";".join(rows[0]), *lines, ""]))
    score_on_cluster(folder / "model", TableSource(tmp_path / "t.csv", decimal=","), tmp_path / "out", device="cpu")
    expected = PTAD.load(folder / "model", device="cpu").anomaly_score(read_table(folder / "parquet").slice(0, 50))
    assert read_table(tmp_path / "out")["score"].to_pylist() == expected.tolist()


@pytest.mark.slow
def test_cells_that_cannot_be_read_are_those_of_the_local_engine(cluster: Any, folder: Path, tmp_path: Path) -> None:
    source = tmp_path / "csv"
    shutil.copytree(folder / "csv", source)
    lines = (source / "2.csv").read_text().splitlines()
    for i in (5, 250):
        key, _, rest = lines[i].split(",", 2)
        lines[i] = f'{key},"abc",{rest}'
    (source / "2.csv").write_text("\n".join(lines))
    settings: dict[str, Any] = {"batch_rows": 100, "explain": 1, "device": "cpu", "missing": ["?"]}
    local = score_table(
        folder / "model", source, tmp_path / "local.parquet", bad_cells=tmp_path / "local.csv", **settings
    )
    found = score_on_cluster(folder / "model", source, tmp_path / "out", bad_cells=tmp_path / "ray.csv", **settings)
    assert found.cells.to_json() == local.cells.to_json() and found.cells.bad_columns == {"a": 2}
    assert read_table(tmp_path / "out").equals(read_table(tmp_path / "local.parquet"))
    listed = (tmp_path / "ray.csv").read_text()
    assert listed == (tmp_path / "local.csv").read_text()
    assert f"6,a,abc,not a number: 'abc',{source / '2.csv'}" in listed.splitlines()
    with pytest.raises(DataError, match=r"Column 'a', .*2\.csv, row (6|251) \(the header is row 1\): 'abc' is not"):
        score_on_cluster(folder / "model", source, tmp_path / "strict", strict=True, **settings)


@pytest.mark.slow
def test_warnings_are_those_of_the_local_engine(cluster: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    a = np.random.default_rng(0).normal(size=200)
    rows = pa.table({"a": a, "b": a**2, "unit": ["kg"] * 200})
    PTAD(verbose=0, device="cpu").fit(rows).save(tmp_path / "model")
    changed = rows.set_column(rows.num_columns - 1, "unit", pa.array(["kg"] * 150 + ["lb"] * 50))
    pq.write_table(changed, tmp_path / "t.parquet")
    warned = "column 'unit' is excluded (constant: 'kg') but now holds 'lb'."
    for score, name in ((score_table, "local.parquet"), (score_on_cluster, "out")):
        caplog.clear()
        found = score(tmp_path / "model", tmp_path / "t.parquet", tmp_path / name, batch_rows=20, device="cpu")
        assert found.training_table, "all reference rows are in the table"
        assert len([r for r in caplog.records if warned in str(r.msg)]) == 1


def test_folders_of_others_and_other_sources_are_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("mine")
    with pytest.raises(SettingError, match="not empty"):
        score_on_cluster(folder / "model", folder / "parquet", tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["letter.txt"]
    for source in ("-", Query("x.db", "SELECT 1")):
        with pytest.raises(SettingError, match="reads files"):
            score_on_cluster(folder / "model", source, tmp_path / "out")
    shutil.rmtree(tmp_path)


def test_missing_extra_and_wrong_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    import ray

    monkeypatch.setattr(ray, "is_initialized", lambda: False)  # other tests may be connected
    with pytest.raises(SettingError, match=r"must be at least 1\. Got 0\."), connected(None, 0):
        pass
    with pytest.raises(SettingError, match=r"No Ray cluster answers at 127\.0\.0\.1:1"), connected("127.0.0.1:1"):
        pass
    starts: list[str] = []

    def slow(**given: Any) -> None:
        starts.append(given["address"])
        raise Exception("The current node timed out during startup.")  # so does Ray

    monkeypatch.setattr(ray, "init", slow)
    monkeypatch.setattr(ray, "shutdown", lambda: None)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(SettingError, match=r"could be started on this machine: .*timed out"), connected():
        pass
    # its own cluster, not one that Ray remembers; a machine with much to do may need another try
    assert starts == ["local"] * 3
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"'ray'.*ptad\[ray\]"), connected():
        pass


def test_command_line_names_what_is_missing(folder: Path) -> None:
    for arguments, message in (
        (["--engine", "ray"], "--out"),
        (["--engine", "spark", "--out", "x"], "local or ray"),
        (["--workers", "2", "--out", "x"], "belong to --engine ray"),
    ):
        result = CliRunner().invoke(app, ["score", str(folder / "model"), str(folder / "csv"), *arguments])
        assert result.exit_code == 2 and message in " ".join(result.stderr.split())
