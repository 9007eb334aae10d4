"""Warm continuation: a fitted detector learns from further normal rows without starting anew.

The network goes on from where it stands, on the training rows that the model keeps and on a half of the new ones; the
other half, which nobody has learned from, gives the new threshold. Columns, categories and scaling stay those of the
fit: where they have changed, only a new fit can know.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from ptad.config import Config
from ptad.errors import DataError
from ptad.fitting import (
    Columns,
    Fitted,
    Matrix,
    check_scores,
    freeze_members,
    make_retrieval,
    network_factor,
    train_members,
)
from ptad.scoring import Calibration, Scorer
from ptad.training import MAX_CALIBRATION_ROWS, History, Member, Progress

#: Share of the fit's steps and of its learning rate: enough to follow, too little to forget.
STEP_SHARE, RATE_SHARE = 0.25, 0.25


def update_matrix(
    scorer: Scorer,
    x: Matrix,
    columns: Columns,
    config: Config,
    *,
    seed: int,
    false_alarm_rate: float | str = "auto",
    n_steps: int | None = None,
    amp: bool = False,
    progress: Progress | None = None,
) -> Fitted:
    """Go on training on the kept rows and half of ``x``, renew the bank, and calibrate on the other half."""
    if len(x) < 4:
        raise DataError(f"An update needs at least 4 new normal rows, got {len(x)}: half of them give the threshold.")
    rng = np.random.default_rng(seed)
    kept = kept_rows(scorer)
    order = len(kept) + rng.permutation(len(x))
    n_calibration = min(len(x) // 2, MAX_CALIBRATION_ROWS)
    Calibration(np.zeros(n_calibration)).rate(false_alarm_rate)  # refuse before training, not after
    rows = np.concatenate([kept, x])
    member = Member(
        train=rng.permutation(np.concatenate([np.arange(len(kept)), order[n_calibration:]])),
        validation=order[:0],
        calibration=order[:n_calibration],
        scores=True,
    )
    members = [member] * scorer.network.n_members
    seeds = [int(s) for s in rng.integers(2**31, size=len(members))]
    shorter = replace(
        config,
        n_steps=max(1, round(STEP_SHARE * config.n_steps)) if n_steps is None else n_steps,
        learning_rate=RATE_SHARE * config.learning_rate,
        patience=None,  # no rows are left to stop by
    )
    space = scorer.space.to(scorer.device, torch.float32)
    network, history = train_members(
        space(torch.from_numpy(rows).to(scorer.device)),
        torch.from_numpy(columns.groups).to(scorer.device),
        members,
        seeds,
        shorter,
        amp,
        progress,
        start=scorer.network,
    )
    updated = freeze_members(
        network, members, seeds, space, x=rows, columns=columns, config=config, device=scorer.device
    )
    if scorer.retrieval is not None:
        bank = rows[rng.permutation(len(rows))[: config.n_bank]]
        updated = replace(
            updated,
            retrieval=make_retrieval(torch.from_numpy(bank).to(scorer.device), config),
            network_factor=network_factor(rows, [member], {0: updated}, config),
        )
    check_scores(updated, rows[member.train[:256]])
    held_out = np.full(len(rows), np.nan)
    held_out[member.calibration] = updated.parts(rows[member.calibration]).score
    return Fitted(updated, Calibration(held_out[member.calibration]), history, held_out)


def kept_rows(scorer: Scorer) -> Matrix:
    """Return the encoded training rows that a detector carries: its bank, or its reference rows."""
    if scorer.retrieval is not None:
        return scorer.retrieval.rows.float().cpu().numpy()
    return np.unique(scorer.reference_rows.flatten(0, 1).float().cpu().numpy(), axis=0)  # members share some


def continued_history(before: History, after: History) -> History:
    """Return one history; the steps of the continuation follow those before."""
    last = max((entry["step"] for entry in before), default=0.0)
    return [*before, *({"member": 0.0, **entry, "step": entry["step"] + last} for entry in after)]
