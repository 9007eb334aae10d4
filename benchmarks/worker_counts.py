"""Compare the AUC of distributed training with one, two and four workers on tables of the benchmark.

    PTAD_DATA=... python benchmarks/worker_counts.py [--datasets wine,glass] [--seeds 3] [--set network.n_steps=100]

Workers are processes joined by gloo, as on a cluster; each draws its share of every batch and its own context.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.multiprocessing as mp
from sklearn.metrics import roc_auc_score

from ptad import PTAD
from ptad.benchmark.collections import load_dataset
from ptad.benchmark.loading import half_split
from ptad.jobs.ray.training import TorchGroup
from ptad.paper.parallel import data_parallel


def work(rank: int, size: int, folder: str, jobs: list[dict[str, Any]]) -> None:
    """Fit and score all jobs together with the other workers; the first one writes the AUCs."""
    torch.set_num_threads(1)
    store = f"file://{folder}/store-{size}"
    torch.distributed.init_process_group("gloo", init_method=store, rank=rank, world_size=size)
    aucs = []
    for job in jobs:
        data = load_dataset(Path(os.environ["PTAD_DATA"]), job["dataset"])
        split = half_split(data.y, job["seed"])
        detector = PTAD("paper", config=job["config"], random_state=job["seed"], verbose=0, device="cpu")
        with data_parallel(TorchGroup()):
            detector.fit(data.X[split.train])
        (term,) = detector.detector_.pipeline.terms
        total = next(iter(term.scorer.network.parameters())).detach().double().sum()
        totals = [torch.zeros_like(total) for _ in range(size)]
        torch.distributed.all_gather(totals, total)
        assert all(torch.equal(total, other) for other in totals), "the workers' parameters differ"
        aucs.append(roc_auc_score(data.y[split.test], detector.anomaly_score(data.X[split.test])))
    if rank == 0:
        np.save(Path(folder) / f"{size}.npy", aucs)
    torch.distributed.destroy_process_group()


def main() -> None:
    """Print one row per table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", default="wine,glass,wdbc,pima")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", default="1,2,4")
    parser.add_argument("--set", action="append", default=[], help="a setting, such as network.n_steps=100")
    options = parser.parse_args()
    config = {name: float(v) if "." in v else int(v) for name, v in (s.split("=") for s in options.set)}
    names, sizes = options.datasets.split(","), [int(s) for s in options.workers.split(",")]
    jobs = [{"dataset": n, "seed": s, "config": config or None} for n in names for s in range(options.seeds)]
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            mp.spawn(work, args=(size, folder, jobs), nprocs=size)
        aucs = {size: np.load(Path(folder) / f"{size}.npy").reshape(len(names), -1) for size in sizes}
    print(f"| table | {' | '.join(f'{s} workers' for s in sizes)} |")
    print("|---|" + "---|" * len(sizes))
    for i, name in enumerate(names):
        cells = [f"{aucs[s][i].mean():.4f} ± {aucs[s][i].std(ddof=1):.4f}" for s in sizes]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
