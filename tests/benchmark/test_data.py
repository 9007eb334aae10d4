"""Catalogue, collections, loaders and the check of a folder."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from ptad.benchmark.collections import (
    COLLECTIONS,
    Collection,
    PaperCollection,
    catalogue,
    dataset_info,
    fixed_sample,
    group_of,
    load_dataset,
    open_collection,
)
from ptad.benchmark.loading import duplicate_share, half_split, load_file
from ptad.benchmark.plan import parse_methods, parse_scalings, parse_seeds
from ptad.benchmark.tables import published
from ptad.errors import DataError, SettingError

X = np.arange(24, dtype=np.float32).reshape(12, 2)
Y = np.arange(12) < 3


def test_catalogue_has_the_twenty_tables() -> None:
    assert len(catalogue()) == 20
    assert dataset_info("wbc").rows == 378
    assert dataset_info("nsl-kdd").anomalies == 71463
    assert all(info.how and info.origin for info in catalogue().values())
    with pytest.raises(SettingError, match=r"'wines'.*arrhythmia.*wine"):
        dataset_info("wines")


def test_loads_npz_and_mat_alike(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", X=X, y=Y.astype(np.uint8))
    savemat(tmp_path / "b.mat", {"X": X, "y": Y.astype(float)[:, None]})
    for path in (tmp_path / "a.npz", tmp_path / "b.mat"):
        data = load_file(path)
        assert data.name == path.stem
        assert np.array_equal(data.X, X) and data.X.dtype == np.float32
        assert np.array_equal(data.y, Y) and data.y.dtype == bool


def test_a_mat_file_of_a_catalogued_table_is_found(tmp_path: Path) -> None:
    table, labels = np.random.default_rng(0).normal(size=(129, 13)), np.arange(129) < 10
    savemat(tmp_path / "wine.mat", {"X": table, "y": labels.astype(float)[:, None]}, do_compression=True)
    data = load_dataset(tmp_path, "wine")
    assert np.array_equal(data.X, table.astype(np.float32)) and np.array_equal(data.y, labels)


def test_another_table_under_a_known_name_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "wine.npz", X=X, y=Y)
    with pytest.raises(
        DataError, match=r"wine\.npz: rows, columns, anomalies are \(12, 2, 3\), expected \(129, 13, 10\)"
    ):
        load_dataset(tmp_path, "wine")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": X}, "no array 'y'"),
        ({"X": X, "y": Y[:5]}, "there are 12 rows but y has 5 labels"),
        ({"X": X.ravel(), "y": Y}, "rows and columns"),
        ({"X": X, "y": Y.astype(int) * 2}, "must be 0 .normal. or 1 .anomaly., found 2"),
        ({"X": X, "y": np.zeros(12)}, "all rows are normal rows"),
        ({"X": X, "y": np.ones(12)}, "all rows are anomalies"),
        ({"X": np.where(X == 5, np.nan, X), "y": Y}, "row 2, column 1"),
        ({"X": X.astype(float) * 1e39, "y": Y}, "single precision"),
        ({"X": X[:5], "y": Y[:5]}, "only 2 normal rows"),
        ({"X": X[:, :0], "y": Y}, "rows and columns"),
        ({"X": X + 1j, "y": Y}, "X must hold real numbers, its type is complex"),
        ({"X": X, "y": np.array(["no"] * 12)}, "y must hold real numbers"),
        ({"train": X, "y": Y}, "no array 'test'"),
        ({"train": X, "test": X[:, :1], "y": Y}, r"train has shape \(12, 2\), test \(12, 1\)"),
        ({"train": X, "test": X, "y": Y * 0}, "all rows are normal rows"),
    ],
)
def test_bad_files_are_named(tmp_path: Path, arrays: dict[str, np.ndarray], message: str) -> None:
    path = tmp_path / "wine.npz"
    np.savez(path, **arrays)
    with pytest.raises(DataError, match=message) as caught:
        load_file(path)
    assert str(path) in str(caught.value)


def test_foreign_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "wine.npz").write_bytes(b"not a zip file")
    with pytest.raises(DataError, match=r"wine\.npz is not a readable \.npz"):
        load_dataset(tmp_path, "wine")
    (tmp_path / "glass.mat").write_bytes(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + b"\x00" * 512)
    with pytest.raises(DataError, match=r"v7\.3 .HDF5."):
        load_dataset(tmp_path, "glass")
    np.save(tmp_path / "a.npy", X)
    (tmp_path / "a.npy").rename(tmp_path / "wbc.npz")
    with pytest.raises(DataError, match=r"wbc\.npz holds a single array"):
        load_dataset(tmp_path, "wbc")
    with pytest.raises(DataError, match=r"neither pima\.npz nor pima\.mat"):
        load_dataset(tmp_path, "pima")


@pytest.mark.parametrize("suffix", [".npz", ".mat"])
def test_damaged_files_are_named_wherever_the_damage_is(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"wine{suffix}"
    arrays = {"X": np.random.default_rng(0).normal(size=(60, 4)), "y": np.arange(60)[:, None] < 9.0}
    np.savez_compressed(path, **arrays) if suffix == ".npz" else savemat(path, arrays, do_compression=True)
    whole = path.read_bytes()
    refused = 0
    for start in range(0, len(whole), len(whole) // 30):
        path.write_bytes(whole[:start] + bytes(b ^ 0xFF for b in whole[start : start + 20]) + whole[start + 20 :])
        try:
            load_file(path)
        except DataError as error:  # nothing else may come out
            refused += str(path) in str(error)
    assert refused > 15


def test_the_papers_folder_is_checked(tmp_path: Path) -> None:
    np.savez(tmp_path / "wine.npz", X=X, y=Y)
    entries = {entry.name: entry for entry in PaperCollection("paper", tmp_path).check()}
    assert entries["wine"].status == "wrong"
    assert "(12, 2, 3), expected (129, 13, 10)" in entries["wine"].message
    assert entries["glass"].status == "missing" and "ODDS" in entries["glass"].message
    with pytest.raises(DataError, match="no folder"):
        PaperCollection("paper", tmp_path / "nowhere").check()


def test_a_fixed_split_is_kept(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", train=X, test=X[:6] + 100, y=np.arange(6) < 2)
    data = load_file(tmp_path / "a.npz")
    for seed in (0, 1):
        split = data.split(seed)
        assert np.array_equal(data.X[split.train], X) and np.array_equal(data.X[split.test], X[:6] + 100)
    assert data.y[data.split(0).test].tolist() == [True, True, False, False, False, False]
    assert not data.y[data.split(0).train].any()


def test_a_table_with_a_label_column(tmp_path: Path) -> None:
    text = "size,colour,state\n1.5,red,fine\n,blue,fine\n3.5,red,bad\n4.5,,fine\n5.0,blue,fine\n"
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    data = Collection("mine", tmp_path, label="state", normal=["fine"]).load("t")
    assert data.y.tolist() == [False, False, True, False, False]
    # the number as it is, then one column per category in sorted order; a missing category has zeros
    assert data.X[:, 1:].tolist() == [[0, 1], [1, 0], [0, 1], [0, 0], [1, 0]]
    assert np.isnan(data.X[1, 0]) and data.X[0, 0] == 1.5
    with pytest.raises(DataError, match=r"t\.csv.*no label column 'label'"):
        Collection("mine", tmp_path).load("t")
    with pytest.raises(DataError, match=r"t\.csv.*other values than 0 and 1"):
        Collection("mine", tmp_path, label="state").load("t")


def test_a_folder_knows_what_is_missing_or_damaged(tmp_path: Path) -> None:
    sums = []
    for name in ("odd_a", "odd_b", "ovr_c"):
        path = tmp_path / "macro" / f"{name}.npz"
        path.parent.mkdir(exist_ok=True)
        np.savez(path, train=X, test=X, y=Y)
        sums.append(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {name}.npz\n")
    (tmp_path / "macro" / "SHA256SUMS").write_text("".join(sums), encoding="utf-8")
    (tmp_path / "macro" / "odd_b.npz").unlink()
    np.savez(tmp_path / "macro" / "ovr_c.npz", train=X, test=X + 1, y=Y)
    macro = open_collection("macro", tmp_path)
    assert {entry.name: entry.status for entry in macro.check()} == {
        "odd_a": "ok",
        "odd_b": "missing",
        "ovr_c": "wrong",
    }
    assert macro.select("odd") == ["odd_a", "odd_b"] and macro.select("ovr_c,odd_a") == ["odd_a", "ovr_c"]
    assert group_of("macro", "ovr_c") == "ovr" and group_of("mine", "ovr_c") == "mine"
    with pytest.raises(SettingError, match=r"no table 'ovr_d'.*odd, ovr, odd_a"):
        macro.select("ovr_d")


def test_a_new_collection_is_a_class_and_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Mine(Collection):
        subfolder, seeds = "mine", "0"

        @staticmethod
        def group(table: str) -> str:
            return table[0]

    monkeypatch.setitem(COLLECTIONS, "mine", Mine)
    (tmp_path / "mine").mkdir()
    for name in ("a1", "a2", "b1"):
        np.savez(tmp_path / "mine" / f"{name}.npz", X=X, y=Y)
    tables = open_collection("mine", tmp_path)
    assert tables.select("a") == ["a1", "a2"] and tables.seeds == "0" and group_of("mine", "b1") == "b"
    assert [entry.status for entry in tables.check()] == ["ok"] * 3
    with pytest.raises(DataError, match="Choose paper, macro, keel, mine, or name a folder"):
        open_collection("nowhere", tmp_path)


def test_a_sample_is_drawn_from_the_sorted_names_with_seed_0(tmp_path: Path) -> None:
    for i in range(30):
        np.savez(tmp_path / f"t{i:02d}.npz", X=X, y=Y)
    tables = Collection("mine", tmp_path)
    drawn = tables.select("all", 5)
    assert drawn == ["t07", "t09", "t14", "t17", "t22"] == fixed_sample(tables.names[::-1], 5)
    assert tables.select("all", 99) == list(tables.names)


def test_lists_on_the_command_line() -> None:
    assert parse_seeds("0-2,7") == [0, 1, 2, 7]
    assert parse_methods("knn, pyod:ECOD, pyod:ecod") == ["knn", "pyod:ECOD"]
    assert len(parse_methods("paper")) == 15
    assert parse_methods("cheap,knn")[-1] == "ptad" and parse_methods("knn,cheap")[0] == "knn"
    assert PaperCollection("paper", Path()).select("wine,glass,wine") == ["glass", "wine"]
    for bad in ("a", "3-1", ""):
        with pytest.raises(SettingError):
            parse_seeds(bad)
    with pytest.raises(SettingError, match="standard, minmax"):
        parse_scalings("robust")


def test_published_tables_agree_with_their_averages() -> None:
    cells = {(method, table): cell for (experiment, method, table), cell in published().items() if experiment == "main"}
    assert len(cells) == 14 * 21
    for method in {method for method, _ in cells}:
        for metric in ("auc_pr", "auc_roc"):
            mean = np.mean([getattr(cells[method, name], metric) for name in catalogue()])
            printed = getattr(cells[method, "average"], metric)
            if (method, metric) == ("npt-ad", "auc_roc"):
                assert mean == pytest.approx(0.8703, abs=5e-5) and cells[method, "average"].suspect
            else:
                assert mean == pytest.approx(printed, abs=1.01e-4)
    assert cells["ptad-paper", "optdigits"].auc_pr == 0.7957
    assert cells["knn", "pima"].suspect and not cells["knn", "wine"].suspect


@pytest.mark.data
@pytest.mark.skipif("PTAD_DATA" not in os.environ, reason="needs the benchmark folder")
def test_real_tables_are_as_the_catalogue_says() -> None:
    folder = Path(os.environ["PTAD_DATA"])
    for name in ("wine", "breastw", "wbc", "mammography"):
        data = load_dataset(folder, name)
        info = dataset_info(name)
        assert (*data.X.shape, data.y.sum()) == (info.rows, info.columns, info.anomalies)
    data = load_dataset(folder, "breastw")
    assert 0.4 < duplicate_share(data.X, data.y, half_split(data.y, 0)) < 0.7
