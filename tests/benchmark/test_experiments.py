"""The paper's further experiments: their variants, the synthetic anomalies, the two measurements."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from ptad.benchmark.collections import PaperCollection
from ptad.benchmark.experiments import EXPERIMENTS, MEASUREMENTS, run_experiment, run_measurement
from ptad.benchmark.experiments.base import Measurement
from ptad.benchmark.experiments.cost import format_cost, measure_cost
from ptad.benchmark.experiments.masks import describe_masks, draw_pair, equal_rate_pair, row_masks
from ptad.benchmark.experiments.paper import batch_dependence_rows, synthetic_loader
from ptad.benchmark.experiments.paper_grid import PRESET, smallest_tables
from ptad.benchmark.experiments.typed_tables import score_without
from ptad.benchmark.loading import Dataset
from ptad.benchmark.peers import make_peer
from ptad.benchmark.plan import RunSettings, make_cells
from ptad.config import PRESETS
from ptad.errors import SettingError
from ptad.estimator import PTAD
from ptad.synthetic import ANOMALY_TYPES

RNG = np.random.default_rng(0)


def toy() -> Dataset:
    base = RNG.normal(size=(400, 1))
    X = np.concatenate([base, base + 0.2 * RNG.normal(size=(400, 1)), RNG.normal(size=(400, 1))], axis=1)
    return Dataset("toy", X.astype(np.float32), np.arange(400) < 60)


@pytest.mark.parametrize(
    ("name", "n_variants"),
    [
        ("ablation", 8),
        ("backbones", 10),
        ("counts", 18),
        ("weights", 12),
        ("distance", 4),
        ("context", 2),
        ("paper-grid", 30),
    ],
)
def test_variants_are_valid_and_differ(name: str, n_variants: int) -> None:
    experiment = EXPERIMENTS[name]
    assert len(experiment.variants) == n_variants
    params = [str(make_peer(v.method, **v.settings).params()) for v in experiment.variants]
    # K = 5, M = 5 and the paper's weights stand once in each half of their experiment.
    repeated = {"counts": 1, "weights": 1}.get(name, 0)
    assert len(set(params)) == n_variants - repeated
    assert all(cell.experiment == name for cell in make_cells(experiment.variants, ["wine"], [0], experiment=name))


def test_the_full_variant_is_the_paper_preset() -> None:
    full = EXPERIMENTS["ablation"].variants[-1]
    assert make_peer(full.method, **full.settings).params() == make_peer("ptad-paper").params()


def test_the_paper_grid_holds_the_preset() -> None:
    found = {variant.name: variant for variant in EXPERIMENTS["paper-grid"].variants}[PRESET]
    assert make_peer(found.method, **found.settings).params() == make_peer("ptad-paper").params()
    assert smallest_tables(3) == ("wine", "glass", "pima")


def test_every_experiment_is_there(tmp_path: Path) -> None:
    named = {"ablation", "backbones", "counts", "weights", "distance", "anomaly-types", "cost", "masks", "context"}
    assert {*EXPERIMENTS, *MEASUREMENTS} == {*named, "typed-tables", "default-parts", "paper-grid"}
    collection = PaperCollection("paper", tmp_path)
    with pytest.raises(SettingError, match=r"'ablations'.*ablation.*masks"):
        run_experiment("ablations", collection, tmp_path / "r.csv", RunSettings())
    with pytest.raises(SettingError, match="'cost' has its own tables"):
        run_experiment("cost", collection, tmp_path / "r.csv", RunSettings(), datasets="wine")


def test_default_parts_take_one_term_away_at_a_time() -> None:
    terms = [term.title() for term in PRESETS["default"].terms if term.title() != "pretrained"]
    whole, *others = EXPERIMENTS["default-parts"].variants
    assert len(others) == len(terms) and list(make_peer(whole.method, **whole.settings).params()["terms"]) == terms
    for name, variant in zip(terms, others, strict=True):
        left = list(make_peer(variant.method, **variant.settings).params()["terms"])
        assert left == [term for term in terms if term != name]
    with pytest.raises(SettingError, match=f"without 'colours'.*{terms[0]}"):
        make_peer("ptad", without=("colours",))


def test_the_score_without_a_term_is_the_sum_of_the_others() -> None:
    data = toy()
    split = data.split(1)
    train, test = data.X[split.train], data.X[split.test]
    terms = PTAD(random_state=1, verbose=0).fit(train).term_scores(test)
    for name in terms.column_names:
        alone = make_peer("ptad", random_state=1, without=(name,)).fit(train).anomaly_score(test)
        assert np.array_equal(score_without(terms, name), alone), name


def synthesise(data: Dataset, kind: str, seed: int) -> Dataset:
    return synthetic_loader(lambda name, seed: data)(f"toy:{kind}", seed)


@pytest.mark.parametrize("kind", ANOMALY_TYPES)
def test_synthetic_anomalies(kind: str) -> None:
    data = synthesise(toy(), kind, 0)
    assert data.X.shape == (400, 3) and data.y.sum() == 60
    normal, anomalies = data.X[~data.y], data.X[data.y]
    if kind == "local":
        assert np.var(anomalies, axis=0).mean() > 3 * np.var(normal, axis=0).mean()
    elif kind == "global":
        assert (np.abs(anomalies) <= 1.1 * np.abs(normal).max(axis=0) + 1e-6).all()
        assert np.var(anomalies, axis=0).mean() > 2 * np.var(normal, axis=0).mean()
    elif kind == "dependency":
        assert np.corrcoef(normal[:, 0], normal[:, 1])[0, 1] > 0.85
        assert abs(np.corrcoef(anomalies[:, 0], anomalies[:, 1])[0, 1]) < 0.4
        assert np.std(anomalies, axis=0) == pytest.approx(np.std(normal, axis=0), rel=0.4)
    else:
        assert np.var(anomalies, axis=0).mean() < 4 * np.var(normal, axis=0).mean()
    with pytest.raises(SettingError, match="local, global"):
        synthesise(toy(), "odd", 0)


def test_synthetic_is_reproducible() -> None:
    data = toy()
    for kind in ANOMALY_TYPES:
        assert np.array_equal(synthesise(data, kind, 3).X, synthesise(data, kind, 3).X)
        assert not np.array_equal(synthesise(data, kind, 3).X, synthesise(data, kind, 4).X)


def test_cost_rows() -> None:
    train, test = RNG.normal(size=(600, 4)).astype(np.float32), RNG.normal(size=(20, 4)).astype(np.float32)
    rows = [measure_cost(name, "cpu", train, test, repeats=1) for name in ("knn", "mcm")]
    assert rows[0]["step_ms"] == "" and rows[0]["n_parameters"] == 0
    assert rows[1]["n_parameters"] == 15 * 3 * 16 + 2 * (4 * 256 + 256 * 256 + 256 * 128)
    assert rows[1]["inference_ms"] > 0
    assert format_cost(rows)[0].rows[0][2] == "–"


@pytest.mark.slow
def test_movement_with_the_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    np.savez(tmp_path / "cardio.npz", X=rng.normal(size=(1831, 21)), y=np.arange(1831) < 176)
    network = {"n_steps": 10, "embedding_dim": 4, "n_heads": 2, "batch_size": 64}
    config = {f"network.{name}": value for name, value in network.items()}
    monkeypatch.setitem(MEASUREMENTS, "context", Measurement("Movement", partial(batch_dependence_rows, config=config)))
    (table,) = run_measurement("context", tmp_path, tmp_path / "r.csv", RunSettings())
    moved = {name: float(change) for name, change in table.rows}
    assert moved["reference"] < 1e-6 and moved["batch"] > 1e-4
    written = (tmp_path / "context.csv").read_text(encoding="utf-8").splitlines()
    assert len(written) == 3 and written[1].startswith("reference,")


def test_masks(tmp_path: Path) -> None:
    rates = np.array([0.1, 0.3, 0.5, 0.31, 0.9])
    labels = np.array([False, False, False, True, True])
    assert equal_rate_pair(rates, labels) == (1, 3)
    data = toy()
    options = {"n_steps": 20, "embedding_dim": 4, "n_heads": 2, "n_basis_vectors": 2, "batch_size": 64}
    hidden, soft = row_masks(data.X[:100], data.X[100:130], "cpu", **options)
    assert hidden.shape == (30, 2, 3) and soft.shape == (30, 3)
    assert 0 < hidden.mean() < 1 and soft.min() > 0 and soft.max() < 1
    labels = np.arange(30) < 5
    normal, anomalous = describe_masks(hidden, soft, labels, tmp_path / "r.csv")
    assert normal["Test rows"] == "normal" and float(anomalous["mean soft mask"]) == pytest.approx(
        soft[:5].mean(), abs=1e-4
    )
    assert (tmp_path / "masks_soft.png").exists() and (tmp_path / "masks_pspace.png").exists()
    draw_pair(hidden[0], hidden[1], "share", tmp_path / "m.png")
    assert (tmp_path / "m.png").read_bytes()[:4] == b"\x89PNG"
