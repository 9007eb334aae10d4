"""The false-alarm rate holds: over many tables of one kind, new normal rows are flagged at most as often as asked.

Every case draws normal rows of a kind, fits the public estimator, and counts flagged new rows of the same kind. Over
all draws the observed rate is at most the target plus two standard errors, and at least 0.7 of the target less two
standard errors where the table has enough rows to be that exact. The standard error is that over fits, and never below
that of the new rows alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from ptad import PTAD
from ptad.reference.coordinates import Coordinates
from ptad.reference.neighbours import Neighbours

RATES = np.array([0.01, 0.05, 0.1])
NEW_ROWS = 250
Array = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Any]


def gaussian(rng: np.random.Generator, n: int) -> Array:
    return rng.normal(size=(n, 5)) @ np.random.default_rng(1).normal(size=(5, 5))


def lognormal(rng: np.random.Generator, n: int) -> Array:
    return np.exp(1.5 * rng.normal(size=(n, 20)))


def counts(rng: np.random.Generator, n: int) -> Array:
    return rng.poisson([0.5, 1.0, 3.0, 8.0], size=(n, 4)).astype(np.float64)


def zipf(rng: np.random.Generator, n: int) -> Array:
    """200 different rows, the most frequent one 200 times as frequent as the rarest."""
    known = np.random.default_rng(5).normal(size=(200, 5))
    chance = 1.0 / np.arange(1, 201)
    return known[rng.choice(200, size=n, p=chance / chance.sum())]


def duplicates(rng: np.random.Generator, n: int) -> Array:
    """Nine of ten rows are among 60 that all tables share; the others are new."""
    known = np.random.default_rng(7).normal(size=(60, 5))
    return np.where(rng.random((n, 1)) < 0.9, known[rng.integers(60, size=n)], rng.normal(size=(n, 5)))


def one_row(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """19 of 20 rows are the same one: its score under the final model must not lie a hair above the threshold."""
    other = rng.random(n) < 0.05
    return pd.DataFrame(
        {
            "size": np.where(other, rng.normal(5.0, 2.0, n), 1.0),
            "count": np.where(other, rng.integers(9, size=n), 3),
            "kind": np.where(other, rng.choice(list("xyz"), n), "q"),
        }
    )


def one_hot(rng: np.random.Generator, n: int) -> Array:
    """Three categories as columns of zeros and ones; the third follows the first."""
    first, second = np.minimum(rng.geometric(0.4, size=n) - 1, 5), rng.integers(3, size=n)
    third = np.where(rng.random(n) < 0.9, first % 4, rng.integers(4, size=n))
    return np.concatenate([np.eye(6)[first], np.eye(3)[second], np.eye(4)[third]], axis=1)


def mixed(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Numbers, categories with a long tail, and gaps, some of which depend on another column."""
    size, kind = rng.normal(size=n), rng.integers(4, size=n)
    table = pd.DataFrame(
        {
            "size": size,
            "price": size + 0.3 * rng.normal(size=n),
            "kind": np.array(["a", "b", "c", "d"])[kind],
            "shop": [f"shop {i}" for i in np.minimum(rng.geometric(0.25, size=n), 14)],
            "delay": rng.exponential(size=n),
        }
    )
    table.loc[rng.random(n) < 0.2, "size"] = np.nan
    table.loc[(rng.random(n) < 0.3) & (kind == 0), "delay"] = np.nan
    table.loc[rng.random(n) < 0.05, "shop"] = None
    return table


def text_and_dates(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Names of which most occur once and some often, and moments."""
    names = [f"customer {i * 7919 % 100_003}" for i in np.minimum(rng.zipf(1.4, size=n), 100_000)]
    moments = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.exponential(1e6, size=n).round(), unit="s")
    return pd.DataFrame({"name": names, "moment": moments, "amount": rng.normal(size=n)})


def repeated_text(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Names that occur four times on average: more new rows than training rows have one that is not repeated."""
    names = [f"customer {i * 7919 % 100_003}" for i in rng.integers(n // 4, size=n)]
    return pd.DataFrame({"name": names, "size": rng.normal(size=n), "amount": rng.normal(size=n)})


CASES: dict[str, Draw] = {
    "gaussian": gaussian,
    "lognormal": lognormal,
    "counts": counts,
    "zipf": zipf,
    "duplicates": duplicates,
    "one_hot": one_hot,
    "mixed": mixed,
    "text_and_dates": text_and_dates,
}


def fitted(case: str, n: int, seed: int) -> tuple[PTAD, np.random.Generator]:
    rng = np.random.default_rng([seed, n])
    types = {"name": "text"} if case == "text_and_dates" else None
    return PTAD(types=types, random_state=seed, verbose=0).fit(CASES[case](rng, n)), rng


@pytest.mark.parametrize("method", ["folds", "split"])
def test_rate_where_text_repeats(method: str) -> None:
    """No calibration row has counted its own text."""
    shares = []
    for seed in range(8):
        rng = np.random.default_rng([seed, 11])
        config = {"calibration.method": method, "calibration.folds": 10, "calibration.most_folds": 10}
        model = PTAD(types={"name": "text"}, config=config, random_state=seed, verbose=0)
        train, new = repeated_text(rng, 800), repeated_text(rng, 800)[:NEW_ROWS]
        shares.append(observed(model.fit(train).p_value(new)))
    check(shares, 800 if method == "folds" else 160)


def observed(p: Array) -> Array:
    """Return the share of flagged rows at every rate."""
    return (np.asarray(p)[:, None] <= RATES).mean(axis=0)


def check(shares: list[Array], n_calibration: int) -> None:
    """Compare what was observed, one entry per fit, with the target."""
    found = np.array(shares)
    over_fits = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    error = np.maximum(over_fits, np.sqrt(RATES * (1.0 - RATES) / (len(found) * NEW_ROWS)))
    mean = found.mean(axis=0)
    text = ", ".join(f"{a:g}: {m:.4f} ± {e:.4f}" for a, m, e in zip(RATES, mean, error, strict=True))
    assert (mean <= RATES + 2.0 * error).all(), f"too many rows are flagged: {text}"
    enough = n_calibration * RATES >= 5.0
    assert (mean >= 0.7 * RATES - 2.0 * error)[enough].all(), f"too few rows are flagged: {text}"


def run(case: str, n: int, fits: int, first: int = 0) -> list[Array]:
    shares = []
    for seed in range(first, first + fits):
        model, rng = fitted(case, n, seed)
        shares.append(observed(model.p_value(CASES[case](rng, NEW_ROWS))))
    return shares


@pytest.mark.parametrize(("n", "fits"), [(100, 20), (300, 10)])
@pytest.mark.parametrize("case", CASES)
def test_rate_of_small_tables(case: str, n: int, fits: int) -> None:
    check(run(case, n, fits), n)


@pytest.mark.parametrize("method", ["folds", "split"])
def test_rate_where_most_rows_are_the_same(method: str) -> None:
    """About 5 % of the rows can be flagged without flagging the common one, so there is no lower bound."""
    shares = []
    for seed in range(20):
        rng = np.random.default_rng([seed, 17])
        model = PTAD(config={"calibration.method": method}, false_alarm_rate=0.1, random_state=seed, verbose=0)
        shares.append(observed(model.fit(one_row(rng, 120)).p_value(one_row(rng, NEW_ROWS))))
    check(shares, 0)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "fits"), [(100, 80), (300, 40), (1000, 20), (2500, 10)])
@pytest.mark.parametrize("case", CASES)
def test_rate_over_many_draws(case: str, n: int, fits: int) -> None:
    check(run(case, n, fits, first=1000), n)


@pytest.mark.parametrize("case", ["lognormal", "zipf", "mixed"])
def test_rate_of_rows_kept_apart(case: str) -> None:
    """The other way to calibrate: a fifth of the rows is kept apart."""
    shares = []
    for seed in range(12):
        rng = np.random.default_rng([seed, 9])
        model = PTAD(config={"calibration.method": "split"}, random_state=seed, verbose=0).fit(CASES[case](rng, 500))
        shares.append(observed(model.p_value(CASES[case](rng, NEW_ROWS))))
    check(shares, 100)


@pytest.mark.parametrize("case", ["gaussian", "zipf", "mixed"])
def test_rate_after_updates_in_the_order_of_time(case: str) -> None:
    """Rows drift; after every update the rate holds for rows of that time."""
    numbers = ["size", "price", "delay"]

    def drawn(rng: np.random.Generator, n: int, month: int) -> Any:
        table = CASES[case](rng, n)
        if isinstance(table, pd.DataFrame):
            table[numbers] += 0.7 * month
            return table
        return table + 0.7 * month

    shares: list[list[Array]] = [[], []]
    for seed in range(12):
        rng = np.random.default_rng([seed, 11])
        model = PTAD(random_state=seed, verbose=0).fit(drawn(rng, 200, 0))
        for month in (1, 2):
            model.update(drawn(rng, 240, month))
            shares[month - 1].append(observed(model.p_value(drawn(rng, NEW_ROWS, month))))
    for after in shares:
        check(after, 120)


def test_rate_after_recalibration() -> None:
    """A model of other rows keeps the rate for those that it was calibrated on."""
    shares = []
    for seed in range(20):
        rng = np.random.default_rng([seed, 13])
        model = PTAD(random_state=seed, verbose=0).fit(gaussian(rng, 100))
        shares.append(observed(model.recalibrate(2.0 * gaussian(rng, 200)).p_value(2.0 * gaussian(rng, NEW_ROWS))))
    check(shares, 200)


# What these tests are worth: a calibration that is broken on purpose is noticed.


def test_coordinates_that_know_the_calibration_rows_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    original, whole = Coordinates.fit, {}

    def knowing(rows: Array, *rest: Any) -> Coordinates:
        return original(whole["rows"], *rest)

    monkeypatch.setattr(Coordinates, "fit", knowing)
    shares = []
    for seed in range(20):
        rng = np.random.default_rng([seed, 100])
        whole["rows"] = lognormal(rng, 100)
        model = PTAD(random_state=seed, verbose=0).fit(whole["rows"])
        shares.append(observed(model.p_value(lognormal(rng, NEW_ROWS))))
    with pytest.raises(AssertionError, match="too many rows"):
        check(shares, 100)


def test_new_rows_without_their_duplicates_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    original = Neighbours.__call__

    def denied(self: Neighbours, queries: Array) -> tuple[Array, Array]:
        k = self.k
        self.k = min(4 * k, len(self.points))
        near, differences = original(self, queries)
        self.k = k
        order = np.argsort((differences == 0.0).all(axis=2), axis=1, kind="stable")[:, :k]
        return np.take_along_axis(near, order, axis=1), np.take_along_axis(differences, order[:, :, None], axis=1)

    shares = []
    for seed in range(10):
        model, rng = fitted("zipf", 300, seed)
        with monkeypatch.context() as patch:
            patch.setattr(Neighbours, "__call__", denied)
            shares.append(observed(model.p_value(zipf(rng, NEW_ROWS))))
    with pytest.raises(AssertionError, match="too many rows"):
        check(shares, 300)


def test_a_threshold_from_the_training_rows_is_noticed() -> None:
    shares = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        rows = gaussian(rng, 100)
        model = PTAD(random_state=seed, verbose=0).fit(rows).recalibrate(rows)
        shares.append(observed(model.p_value(gaussian(rng, NEW_ROWS))))
    with pytest.raises(AssertionError, match="too many rows"):
        check(shares, 100)
