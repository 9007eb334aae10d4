"""What the paper claims, set beside what was measured here: one row per claim, a pure read of the results.

A claim is a sentence of the form "A is better than B" about two variants. Here it holds when the mean over the tables
that both were measured on has the same sign and a paired Wilcoxon signed-rank test over those tables says p < 0.05;
with the right sign and a larger p it is "not significant".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ptad.benchmark.store import Row
from ptad.benchmark.summary import Summary, published, summarise
from ptad.benchmark.tables import Table, plain_table

#: Fewer tables than this cannot give p < 0.05 in a two-sided Wilcoxon test.
_FEWEST_TABLES = 6


@dataclass(frozen=True)
class Claim:
    """The paper says that ``better`` beats ``worse`` by ``gain`` points of AUC-PR (averages over its tables)."""

    text: str
    experiment: str
    better: str
    worse: str
    gain: float | None = None


def _against(peer: str) -> Claim:
    gain = published()["ptad", "average"].auc_pr - published()[peer, "average"].auc_pr
    return Claim(f"PTAD beats {peer}", "main", "ptad-paper", peer, gain)


CLAIMS: tuple[Claim, ...] = (
    *(_against(peer) for peer in ("mcm-npt", "mcm", "npt-ad", "dte-c", "knn", "ocsvm")),
    Claim("a data-space mask helps", "ablation", "data mask", "nothing", 0.6508 - 0.6381),
    Claim("a P-space mask helps", "ablation", "+ single mask", "data mask", 0.6848 - 0.6508),
    Claim("several masks beat one", "ablation", "+ multiple masks, orthogonal", "+ single mask", 0.7337 - 0.6848),
    Claim(
        "learned masks beat random ones",
        "ablation",
        "+ multiple masks, orthogonal",
        "+ random mask",
        0.7337 - 0.6835,
    ),
    Claim("prototypes help", "ablation", "+ prototypes", "data mask", 0.7080 - 0.6508),
    Claim("orthogonality helps", "ablation", "full", "+ multiple masks, prototypes", 0.7513 - 0.7392),
    Claim("the whole beats the bare net", "ablation", "full", "nothing", 0.7513 - 0.6381),
    Claim(
        "transport beats MSE for basis vectors",
        "distance",
        "basis transport, prototypes transport",
        "basis mse, prototypes transport",
        0.7513 - 0.6543,
    ),
    Claim(
        "transport beats MSE for prototypes",
        "distance",
        "basis transport, prototypes transport",
        "basis transport, prototypes mse",
        0.7513 - 0.6649,
    ),
    Claim("masks help an MLP", "backbones", "mlp, masks", "mlp, plain"),
    Claim("masks help a transformer", "backbones", "transformer, masks", "transformer, plain"),
    Claim("prototypes help a transformer", "backbones", "transformer, prototypes", "transformer, plain"),
    Claim("both help a transformer", "backbones", "transformer, masks and prototypes", "transformer, plain"),
    Claim("masks help an NPT", "backbones", "npt, masks", "npt, plain"),
    Claim("prototypes help an NPT", "backbones", "npt, prototypes", "npt, plain"),
    Claim("PTAD beats MCM on four types of anomalies", "anomaly-types", "ptad-paper", "mcm", 0.5526 - 0.5147),
    Claim("more basis vectors help", "counts", "K = 9", "K = 1"),
    Claim("more prototypes help a little", "counts", "M = 9", "M = 1"),
    Claim("calibration distances help the score", "weights", "kappa = alpha = 0.01", "kappa = alpha = 0"),
)


def claim_table(rows: Sequence[Row]) -> Table:
    """All claims with the paper's gain, ours, the number of tables, p and a verdict."""
    summaries: dict[str, Summary] = {}
    body = []
    for claim in CLAIMS:
        if claim.experiment not in summaries:
            chosen = [row for row in rows if row["experiment"] == claim.experiment]
            summaries[claim.experiment] = summarise(chosen, "auc_pr")
        body.append(_row(claim, summaries[claim.experiment]))
    header = ["Claim", "Experiment", "Gain in the paper", "Gain here", "Tables", "Won", "p", "Verdict"]
    return plain_table("Claims of the paper, AUC-PR", header, body)


def _row(claim: Claim, summary: Summary) -> list[str]:
    printed = "" if claim.gain is None else f"{claim.gain:+.4f}"
    start = [claim.text, claim.experiment, printed]
    pairs = [(summary.value(claim.better, d), summary.value(claim.worse, d)) for d in summary.datasets]
    differences = np.array([a - b for a, b in pairs if not np.isnan([a, b]).any()])
    if len(differences) == 0:
        return [*start, "", "0", "", "", "not measured"]
    gain, n_tables = float(differences.mean()), len(differences)
    won = f"{int((differences > 0).sum())}"
    p = _wilcoxon(differences)
    if gain <= 0:
        verdict = "does not hold" if p is None or p >= 0.05 else "the opposite holds"
    elif p is None:
        verdict = "too few tables to test"
    else:
        verdict = "holds" if p < 0.05 else "not significant"
    return [*start, f"{gain:+.4f}", str(n_tables), won, "" if p is None else f"{p:.3f}", verdict]


def _wilcoxon(differences: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float | None:
    from scipy.stats import wilcoxon

    if len(differences) < _FEWEST_TABLES or not differences.any():
        return None
    return float(wilcoxon(differences, zero_method="zsplit").pvalue)
