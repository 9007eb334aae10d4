"""The streaming histogram of scores."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from ptad.report.score_histogram import MOST_BINS, ScoreHistogram, ScoreScale, common_edges, roc_auc

UNIT = ScoreScale(0.0, 1.0)


def test_counts_beyond_the_threshold_are_exact():
    scores = np.array([-1e30, -3.0, 0.0, 0.5, 1.2345, 1.2345, np.nextafter(1.2345, 2), 7.0, 1e30])
    histogram = ScoreHistogram(1.2345, UNIT)
    histogram.add(scores[:3])
    histogram.add(scores[3:])
    assert histogram.n_flagged == 3
    assert histogram.counts.sum() == 9


@pytest.mark.parametrize("threshold", [1.7, -0.4])
@pytest.mark.parametrize("spread", [0.01, 1.0, 6.0])
def test_merged_edges_keep_threshold_and_counts(spread, threshold):
    rng = np.random.default_rng(0)
    a, b = np.sinh(spread * rng.normal(size=500)), np.sinh(spread * rng.normal(size=300) + 1)
    first, second = ScoreHistogram(threshold, UNIT), ScoreHistogram(threshold, UNIT)
    first.add(a)
    second.add(b)
    edges, (counts_a, counts_b) = common_edges([first, second])
    assert len(edges) <= MOST_BINS + 2
    assert len(counts_a) == len(edges) + 1
    place = int(np.flatnonzero(edges == threshold)[0])
    assert counts_a.sum() == 500
    assert counts_a[place + 1 :].sum() == (a > threshold).sum()
    assert counts_b[place + 1 :].sum() == (b > threshold).sum()
    for i in (0, len(edges) // 2, len(edges) - 1):
        assert counts_a[i + 1 :].sum() == (a > edges[i]).sum()


def test_area_from_bins_is_that_of_the_scores():
    rng = np.random.default_rng(1)
    normal, anomalies = rng.normal(size=2000), rng.normal(size=300) + 1.0
    first, second = ScoreHistogram(2.0, UNIT), ScoreHistogram(2.0, UNIT)
    first.add(normal)
    second.add(anomalies)
    exact = roc_auc_score(np.repeat([0, 1], [2000, 300]), np.concatenate([normal, anomalies]))
    assert roc_auc(first.counts, second.counts) == pytest.approx(exact, abs=1e-3)
    assert roc_auc(first.counts, 0 * second.counts) is None


@pytest.mark.parametrize("scores", [np.arange(100.0) - 50, np.full(9, 3.0), np.array([1e-6, 2e-6, 3e-6]), [5.0]])
def test_the_scale_is_increasing_and_invertible(scores):
    scale = ScoreScale.of(np.asarray(scores))
    known = np.array([-1e6, -3.0, 0.0, 1e-6, 3.0, 1e9])
    assert (np.diff(scale(known)) > 0).all()
    near = scale.centre + scale.unit * np.linspace(-5, 5, 11)
    np.testing.assert_allclose(scale.inverse(scale(near)), near, rtol=1e-9, atol=1e-9 * scale.unit)
