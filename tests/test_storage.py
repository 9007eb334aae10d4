"""Model bundles: the same scores bit for bit, nothing executed, nothing lost, and telling refusals."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
from numpy.typing import NDArray
from sklearn.base import clone

from ptad import PTAD, BundleError, SettingError, __version__
from ptad.storage import FORMAT_VERSION

Make = Callable[..., PTAD]
Rows = NDArray[np.float64]


@pytest.fixture
def saved(detector: PTAD, tmp_path: Path) -> Path:
    detector.save(tmp_path / "model")
    return tmp_path / "model"


def resign(folder: Path, **changes: Any) -> None:
    """Change the manifest and put a fitting checksum on it, as another version of the library would."""
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest.update(changes)
    manifest.pop("manifest_sha256")
    text = json.dumps(manifest, sort_keys=True, ensure_ascii=False)
    manifest["manifest_sha256"] = hashlib.sha256(text.encode()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    ("preset", "config"),
    [
        ("default", {}),
        ("default", {"calibration.method": "none"}),
        ("default", {"calibration.method": "split", "reference.rows": 20}),
        ("paper", {}),
    ],
    ids=str,
)
def test_round_trip(make_detector: Make, rows: Rows, tmp_path: Path, preset: str, config: dict[str, Any]) -> None:
    model = make_detector(preset, config).fit(rows)
    model.save(tmp_path / "model")
    again = PTAD.load(tmp_path / "model")
    x = rows + 0.1
    x[::5, 1] = np.nan
    assert np.array_equal(model.anomaly_score(x), again.anomaly_score(x))
    assert np.array_equal(model.transform(x), again.transform(x))
    assert np.array_equal(model.explain(x).contribution_values, again.explain(x).contribution_values)
    assert again.config_ == model.config_ and again.history_ == model.history_ and again.n_features_in_ == 4
    if model.detector_.calibration is not None:
        assert np.array_equal(model.p_value(x), again.p_value(x))
        assert np.array_equal(model.predict(x), again.predict(x))
        assert again.offset_ == model.offset_ and again.false_alarm_rate_ == model.false_alarm_rate_
    else:
        with pytest.raises(SettingError, match="no threshold"):
            again.predict(x)


def test_round_trip_of_a_frame_with_text(frame_detector: PTAD, frame: pd.DataFrame, tmp_path: Path) -> None:
    frame_detector.save(tmp_path / "model")
    again = PTAD.load(tmp_path / "model")
    table = frame.copy()
    table.loc[3, "colour"] = "never seen"
    table.loc[4, "colour"] = None
    assert np.array_equal(frame_detector.anomaly_score(table), again.anomaly_score(table))
    assert list(again.feature_names_in_) == ["a", "b", "colour", "c"]
    first, second = frame_detector.explain(table.head(6)), again.explain(table.head(6))
    pd.testing.assert_frame_equal(first.contributions, second.contributions)
    pd.testing.assert_frame_equal(first.expected, second.expected)


def test_a_changed_rate_is_kept(make_detector: Make, rows: Rows, tmp_path: Path) -> None:
    model = make_detector().fit(rows).set_false_alarm_rate(0.2)
    model.save(tmp_path / "model")
    again = PTAD.load(tmp_path / "model")
    assert again.false_alarm_rate_ == 0.2 and again.offset_ == model.offset_


def test_numpy_settings_can_be_saved(make_detector: Make, rows: Rows, tmp_path: Path) -> None:
    model = make_detector(config={"reference.rows": np.int64(20)}, false_alarm_rate=np.float32(0.1)).fit(rows)
    model.save(tmp_path / "model")
    again = PTAD.load(tmp_path / "model")
    assert again.config_.reference.rows == 20 and again.false_alarm_rate_ == pytest.approx(0.1)


def test_a_loaded_model_fits_again_as_before(make_detector: Make, frame: pd.DataFrame, tmp_path: Path) -> None:
    chosen = {
        "types": {"b": "categorical"},
        "missing": ("?",),
        "drop": {"c"},
        "only": ["a", "b", "c"],
        "random_state": 7,
    }
    model = make_detector(**chosen).fit(frame)
    model.save(tmp_path / "model")
    again = clone(PTAD.load(tmp_path / "model")).set_params(verbose=0).fit(frame)
    assert again.schema_.to_json() == model.schema_.to_json()
    assert np.array_equal(again.anomaly_score(frame), model.anomaly_score(frame))


def test_a_moved_folder_and_other_thread_counts(
    saved: Path, detector: PTAD, rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.move(saved, tmp_path / "elsewhere")
    scores = detector.anomaly_score(rows)
    monkeypatch.setattr("ptad.parallel.CHUNK_ROWS", 7)
    for workers in (1, 2, 5):
        monkeypatch.setattr("ptad.parallel.n_processors", lambda workers=workers: workers)
        assert np.array_equal(PTAD.load(tmp_path / "elsewhere", device="cpu").anomaly_score(rows), scores)


def test_no_pickle_on_the_path(detector: PTAD, rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("pickle was used")

    for name in ("dump", "dumps", "load", "loads", "Pickler", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    detector.save(tmp_path / "model")
    assert np.array_equal(PTAD.load(tmp_path / "model").anomaly_score(rows), detector.anomaly_score(rows))
    assert sorted(p.name for p in (tmp_path / "model").iterdir()) == ["manifest.json", "tensors.safetensors"]


def test_the_manifest_is_readable(saved: Path) -> None:
    manifest = json.loads((saved / "manifest.json").read_text())
    assert manifest["format"] == "ptad-bundle" and manifest["ptad_version"] == __version__
    assert manifest["config"]["terms"]["local_reconstruction"]["ridge"] > 0 and manifest["n_rows"] == 100


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_truncated_tensors(saved: Path, share: float) -> None:
    file = saved / "tensors.safetensors"
    file.write_bytes(file.read_bytes()[: int(share * file.stat().st_size)])
    with pytest.raises(BundleError, match=r"tensors\.safetensors' is truncated or damaged"):
        PTAD.load(saved)


def test_one_flipped_bit(saved: Path) -> None:
    file = saved / "tensors.safetensors"
    blob = bytearray(file.read_bytes())
    blob[-5] ^= 1
    file.write_bytes(bytes(blob))
    with pytest.raises(BundleError, match="truncated or damaged"):
        PTAD.load(saved)


def test_truncated_manifest(saved: Path) -> None:
    file = saved / "manifest.json"
    file.write_bytes(file.read_bytes()[:200])
    with pytest.raises(BundleError, match="not valid JSON"):
        PTAD.load(saved)


def test_edited_manifest(saved: Path) -> None:
    file = saved / "manifest.json"
    text = file.read_text()
    assert '"n_rows": 100' in text
    file.write_text(text.replace('"n_rows": 100', '"n_rows": 101'))
    with pytest.raises(BundleError, match="was edited or damaged"):
        PTAD.load(saved)


@pytest.mark.parametrize("name", ["manifest.json", "tensors.safetensors"])
def test_missing_file(saved: Path, name: str) -> None:
    (saved / name).unlink()
    with pytest.raises(BundleError, match=f"has no file '{name}'"):
        PTAD.load(saved)


@pytest.mark.parametrize("manifest", ["{}", "[]", '{"format": "other"}', "7"])
def test_foreign_folder(saved: Path, manifest: str) -> None:
    (saved / "manifest.json").write_text(manifest)
    with pytest.raises(BundleError, match="is not a ptad model: its manifest does not say format"):
        PTAD.load(saved)


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="There is no model folder at"):
        PTAD.load(tmp_path / "nothing")


def test_future_version(saved: Path) -> None:
    resign(saved, format_version=FORMAT_VERSION + 1, ptad_version="9.0.0")
    with pytest.raises(
        BundleError, match=rf"format version {FORMAT_VERSION + 1}, written by ptad 9\.0\.0; .*Upgrade ptad"
    ):
        PTAD.load(saved)


@pytest.mark.parametrize("version", [1, 2])
def test_a_bundle_of_an_earlier_release_asks_to_fit_again(saved: Path, version: int) -> None:
    resign(saved, format_version=version, ptad_version="0.1.0")
    with pytest.raises(BundleError, match=r"written by ptad 0\.1\.0, in an older format\. Fit again\."):
        PTAD.load(saved)


@pytest.mark.parametrize("version", [None, "3", 0, -1])
def test_invalid_versions_are_an_error(saved: Path, version: Any) -> None:
    resign(saved, format_version=version)
    with pytest.raises(BundleError, match="has format version"):
        PTAD.load(saved)


def rewrite(folder: Path, arrays: dict[str, Any]) -> None:
    """Put other arrays into a bundle, with fitting checksums."""
    blob = safetensors.numpy.save(arrays)
    (folder / "tensors.safetensors").write_bytes(blob)
    resign(folder, tensors_sha256=hashlib.sha256(blob).hexdigest())


@pytest.mark.parametrize("name", ["reference", "units", "rare_pair.counts", "missing_values.chance"])
def test_an_array_that_is_missing_is_named(saved: Path, name: str) -> None:
    arrays = safetensors.numpy.load((saved / "tensors.safetensors").read_bytes())
    assert name in arrays
    rewrite(saved, {key: value for key, value in arrays.items() if key != name})
    with pytest.raises(BundleError, match=f"it has no array '{name}'"):
        PTAD.load(saved)


@pytest.mark.parametrize("key", ["schema", "config", "parameters", "n_features_in", "history", "n_rows"])
def test_an_entry_that_is_missing_from_the_manifest_is_refused(saved: Path, key: str) -> None:
    manifest = json.loads((saved / "manifest.json").read_text())
    del manifest[key]
    (saved / "manifest.json").write_text(json.dumps(manifest))
    resign(saved)
    with pytest.raises(BundleError, match=f"its manifest has no '{key}'"):
        PTAD.load(saved)


def test_resigned_without_a_change_is_read(saved: Path, detector: PTAD, rows: Rows) -> None:
    """The tool of the test above makes valid bundles: it was the version that was refused."""
    resign(saved)
    assert np.array_equal(PTAD.load(saved).anomaly_score(rows), detector.anomaly_score(rows))


def test_an_older_bundle_is_replaced(saved: Path, make_detector: Make, rows: Rows) -> None:
    other = make_detector(random_state=1).fit(rows)
    other.save(saved)
    assert np.array_equal(PTAD.load(saved).anomaly_score(rows), other.anomaly_score(rows))
    assert [p.name for p in saved.parent.iterdir()] == ["model"]


@pytest.mark.parametrize("manifest", [None, '{"name": "my page", "icons": []}', "not json"])
def test_a_foreign_folder_is_not_overwritten(detector: PTAD, tmp_path: Path, manifest: str | None) -> None:
    folder = tmp_path / "page"
    folder.mkdir()
    (folder / "precious.txt").write_text("precious")
    if manifest is not None:
        (folder / "manifest.json").write_text(manifest)
    with pytest.raises(BundleError, match="is not a ptad model and is not replaced"):
        detector.save(folder)
    assert (folder / "precious.txt").read_text() == "precious"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_file_is_not_overwritten(detector: PTAD, tmp_path: Path) -> None:
    (tmp_path / "model").write_text("precious")
    with pytest.raises(BundleError, match="not replaced"):
        detector.save(tmp_path / "model")
    assert (tmp_path / "model").read_text() == "precious"


@pytest.mark.parametrize("failing", [1, 2])
def test_a_failed_write_leaves_the_old_bundle(
    saved: Path,
    detector: PTAD,
    make_detector: Make,
    rows: Rows,
    monkeypatch: pytest.MonkeyPatch,
    failing: int,
) -> None:
    import ptad.storage

    original, calls = ptad.storage.write_synced, [0]

    def write(path: Path, blob: bytes) -> None:
        calls[0] += 1
        if calls[0] == failing:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        original(path, blob)

    other = make_detector(random_state=1).fit(rows)
    with monkeypatch.context() as patch:
        patch.setattr(ptad.storage, "write_synced", write)
        with pytest.raises(BundleError, match=r"model cannot be written: no space left on the device"):
            other.save(saved)
    assert np.array_equal(PTAD.load(saved).anomaly_score(rows), detector.anomaly_score(rows))
    assert [p.name for p in saved.parent.iterdir()] == ["model"]


@pytest.mark.parametrize("failing", [1, 2])
def test_a_failed_rename_leaves_the_old_bundle(
    saved: Path, detector: PTAD, rows: Rows, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    """Where two folders cannot change places, they are renamed one after the other."""
    original, calls = Path.rename, [0]

    def rename(self: Path, target: Any) -> Any:
        calls[0] += 1
        if calls[0] == failing:
            raise OSError("the disk went away")
        return original(self, target)

    with monkeypatch.context() as patch:
        patch.setattr("ptad.folders.exchange", lambda *_: False)
        patch.setattr(Path, "rename", rename)
        with pytest.raises(BundleError, match="cannot be written"):
            detector.save(saved)
    assert calls[0] >= failing
    assert np.array_equal(PTAD.load(saved).anomaly_score(rows), detector.anomaly_score(rows))
    assert [p.name for p in saved.parent.iterdir()] == ["model"]


def test_an_unfitted_detector_has_nothing_to_save(tmp_path: Path) -> None:
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        PTAD().save(tmp_path / "model")
