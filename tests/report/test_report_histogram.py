"""The streaming histogram of scores."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from ptad.report.score_histogram import MOST_BINS, ScoreHistogram, common_edges, roc_auc


def test_counts_beyond_the_threshold_are_exact():
    scores = np.array([0.0, 0.5, 1.2345, 1.2345, np.nextafter(1.2345, 2), 7.0, 1e30])
    histogram = ScoreHistogram(1.2345)
    histogram.add(scores[:3])
    histogram.add(scores[3:])
    assert histogram.n_strange == 3
    assert histogram.counts.sum() == 7


@pytest.mark.parametrize("spread", [0.01, 1.0, 6.0])
def test_merged_edges_keep_threshold_and_counts(spread):
    rng = np.random.default_rng(0)
    a, b = np.exp(spread * rng.normal(size=500)), np.exp(spread * rng.normal(size=300) + 1)
    first, second = ScoreHistogram(1.7), ScoreHistogram(1.7)
    first.add(a)
    second.add(b)
    edges, (counts_a, counts_b) = common_edges([first, second])
    assert len(edges) <= MOST_BINS + 2
    assert len(counts_a) == len(edges) + 1
    place = int(np.flatnonzero(edges == 1.7)[0])
    assert counts_a.sum() == 500
    assert counts_a[place + 1 :].sum() == (a > 1.7).sum()
    assert counts_b[place + 1 :].sum() == (b > 1.7).sum()
    for i in (0, len(edges) // 2, len(edges) - 1):
        assert counts_a[i + 1 :].sum() == (a > edges[i]).sum()


def test_area_from_bins_is_that_of_the_scores():
    rng = np.random.default_rng(1)
    normal, strange = np.exp(rng.normal(size=2000)), np.exp(rng.normal(size=300) + 1.0)
    first, second = ScoreHistogram(2.0), ScoreHistogram(2.0)
    first.add(normal)
    second.add(strange)
    exact = roc_auc_score(np.repeat([0, 1], [2000, 300]), np.concatenate([normal, strange]))
    assert roc_auc(first.counts, second.counts) == pytest.approx(exact, abs=1e-3)
    assert roc_auc(first.counts, 0 * second.counts) is None
