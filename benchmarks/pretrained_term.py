"""Train and evaluate the term ``pretrained``: a network that learns across tables.

    python benchmarks/pretrained_term.py describe DIR OUT   # inputs of the network, for copies of every table
    python benchmarks/pretrained_term.py train OUT          # five folds, leave-table-out, and one network on all tables
    python benchmarks/pretrained_term.py evaluate DIR OUT   # every table with the weights that were not trained on it

DIR holds ``.npz`` files with ``train`` (normal rows), ``test`` and ``y``. A copy of a table has fewer rows, fewer
columns, distorted columns or columns of noise, so that the network cannot memorise tables.

An interrupted stage continues when it is run again: inputs and networks are reused as long as the tables they were
made from are the same. After a change of the code, use a new OUT.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import math
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from ptad.config import PRESETS, Config
from ptad.detector import Detector
from ptad.files import NewFile, write_atomic
from ptad.reference import Batch, Reference, ReferenceSettings
from ptad.tables.features import Features
from ptad.terms import pretrained

N_COPIES, N_FOLDS, STEPS = 12, 5, 700
FOLDS = Path(__file__).parent / "results" / "pretrained.csv"
ANOMALIES, NORMAL, LEFT_OUT = 48, 112, 80  # rows of a copy
WEIGHT = 3.0
RATES = (0.01, 0.05, 0.1)
SIMPLE = np.array([3.0, 3.0, 2.0, 1.0])  # the default's weights of the first four entries of a summary


def draw_copy(rng: np.random.Generator, train, test, y):
    """Return reference rows, left-out rows and test rows of an altered copy."""
    order = rng.permutation(len(train))
    n = int(rng.choice([300, 700, 1500, 3000], p=[0.15, 0.2, 0.3, 0.35]))
    reference, left_out = train[order[LEFT_OUT : LEFT_OUT + n]], train[order[:LEFT_OUT]]
    chosen = np.r_[rng.choice(np.flatnonzero(y), ANOMALIES), rng.choice(np.flatnonzero(~y), NORMAL)]
    rows = np.concatenate([reference, test[chosen], left_out]).astype(np.float64)
    d, start = rows.shape[1], len(reference)
    if rng.random() < 0.4:  # monotone distortions
        z = (rows - reference.mean(axis=0)) / (reference.std(axis=0) + 1e-6)
        strength = np.exp(rng.normal(size=d))
        distorted = np.where(rng.random(d) < 0.5, np.arcsinh(strength * z), np.exp(np.minimum(0.7 * z, 8.0)))
        rows = np.where(rng.random(d) < 0.4, distorted, z)
    if rng.random() < 0.2:
        rows = np.where(rng.random(d) < 0.2, rng.normal(size=rows.shape), rows)
    if rng.random() < 0.4:  # dropped columns
        columns = rng.random(d) > 0.05 + 0.3 * rng.random()
        rows = rows[:, columns] if columns.sum() >= 2 else rows
    return rows[:start], rows[start:]


def describe_table(task: tuple[str, str]) -> str:
    """Write the inputs of the network for all copies of a table, unless they exist."""
    path, target = Path(task[0]), Path(task[1], Path(task[0]).name)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if target.exists():
        with np.load(target) as existing:
            if str(existing["table_sha256"]) == digest:
                return path.stem
    table = np.load(path)
    train, test, y = table["train"], table["test"], table["y"].astype(bool)
    rng = np.random.default_rng([7, sum(map(ord, path.stem))])
    arrays: dict[str, np.ndarray] = {"table_sha256": np.array(digest), "prevalence": np.array(y.mean())}
    for i in range(N_COPIES):
        reference_rows, rows = draw_copy(rng, train, test, y)
        reference = Reference(reference_rows, Features.numeric(reference_rows.shape[1]), ReferenceSettings())
        term = pretrained.Pretrained({}, reference, pretrained.PretrainedSettings(most_features=10_000))
        batch = Batch(rows, reference)
        cells, summary = term.inputs(batch)
        arrays |= {f"cells{i}": cells.astype(np.float16), f"summary{i}": summary.astype(np.float16)}
        arrays[f"simple{i}"] = simple_score(term.describe(batch)[1][:, : len(SIMPLE)])
    with NewFile(target) as temporary, temporary.open("wb") as file:
        np.savez(file, **arrays)
    return path.stem


def simple_score(values):
    """Return the sum of four terms in units of the left-out rows, an approximation of the default's score."""
    left_out = values[-LEFT_OUT:]
    z = (values - left_out.mean(axis=0)) / (left_out.std(axis=0) + 0.05)
    score = (0.5 * np.logaddexp(0.0, 2.0 * z)) @ SIMPLE
    return (score / (score[-LEFT_OUT:].std() + 0.05)).astype(np.float32)


def network(torch):
    """Return the untrained network."""

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            shapes = {name.replace(".", "_"): shape for name, shape in pretrained.SHAPES.items()}
            self.layers = torch.nn.ModuleDict({name: torch.nn.Linear(*shape) for name, shape in shapes.items()})
            self.drop = torch.nn.Dropout(0.1)

        def forward(self, cells, summary, mask):
            f, relu = self.layers, torch.relu
            hidden = f["cell_1"](self.drop(relu(f["cell_0"](cells))))
            hidden = hidden + f["row_1"](self.drop(relu(f["row_0"](summary))))[..., None, :]
            active = relu(hidden) * mask[..., None]
            mean = active.sum(-2) / mask.sum(-1)[..., None]
            hidden = hidden + f["context"](torch.cat([mean, active.amax(-2)], -1))[..., None, :]
            logits = f["head_1"](self.drop(relu(f["head_0"](relu(hidden)))))[..., 0]
            return torch.logsumexp(logits + torch.log(mask + 1e-9), -1) - torch.log(mask.sum(-1))

    return Net()


def load_copies(folder: Path, names: list[str]):
    """Return every copy as (cells, summary, simple score, prevalence), sorted by width."""
    copies = []
    for name in names:
        with np.load(folder / f"{name}.npz") as table:
            copies += [
                (table[f"cells{i}"], table[f"summary{i}"], table[f"simple{i}"], float(table["prevalence"]))
                for i in range(N_COPIES)
            ]
    return sorted(copies, key=lambda copy: copy[0].shape[1])


def weights_file(out: Path, fold: int) -> Path:
    """Return the file of a fold's weights; those trained on all tables have the name under which they ship."""
    return out / ("pretrained.safetensors" if fold == -1 else f"weights{fold}.safetensors")


def is_trained(path: Path, about: dict[str, str]) -> bool:
    """Return whether the file holds weights of the same seed and tables."""
    from safetensors import safe_open

    if not path.exists():
        return False
    with safe_open(path, "np") as weights:
        return weights.metadata() == about


def train_fold(task: tuple[str, int]) -> str:
    """Train on all tables but those of a fold, unless the weights exist; fold -1 leaves out none."""
    import torch
    from safetensors.numpy import save
    from torch.nn.functional import softplus

    out, fold = Path(task[0]), task[1]
    tables = json.loads((out / "tables.json").read_text())
    names = sorted(name for name in tables["folds"] if tables["folds"][name] != fold)
    about = {"seed": str(fold + 1), "tables": str(len(names)), "tables_sha256": tables["sha256"][str(fold)]}
    if is_trained(weights_file(out, fold), about):
        return f"fold {fold}: trained before"
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(fold + 1)
    torch.set_num_threads(1)
    rng = np.random.default_rng(fold + 1)
    copies = load_copies(out, names)
    net = network(torch).to(device)
    mean_net = network(torch).to(device)
    mean_net.load_state_dict(net.state_dict())
    optimizer = torch.optim.AdamW(net.parameters(), 2e-3, weight_decay=0.05, betas=(0.9, 0.98))
    for step in range(STEPS):
        rate = min(1.0, (step + 1) / 50) * (0.05 + 0.475 * (1.0 + math.cos(math.pi * step / STEPS)))
        for group in optimizer.param_groups:
            group["lr"] = 2e-3 * rate
        start = rng.integers(len(copies))  # copies of about the same width, from anywhere in the list
        near = np.unique(np.clip(start + rng.integers(-400, 400, size=16), 0, len(copies) - 1))
        widest = max(copies[i][0].shape[1] for i in near)
        cells = np.stack([np.pad(c := copies[i][0], ((0, 0), (0, widest - c.shape[1]), (0, 0))) for i in near])
        mask = np.stack([np.arange(widest) < copies[i][0].shape[1] for i in near]).astype(np.float32)
        batch = [cells, np.stack([copies[i][1] for i in near]), np.stack([copies[i][2] for i in near]), mask]
        x, summary, simple, real = (torch.from_numpy(a).to(device).float() for a in batch)
        value = net(x, summary, real[:, None].expand(-1, x.shape[1], -1))
        left_out = value[:, -LEFT_OUT:]
        z = (value - left_out.mean(1, keepdim=True)) / (left_out.std(1, keepdim=True) + 0.05)
        score = 0.35 * simple + 0.5 * softplus(2.0 * z)
        above = (score[:, None, ANOMALIES:] - score[:, :ANOMALIES, None]) / 0.7  # (tables, anomalies, normal rows)
        share = torch.tensor([copies[i][3] for i in near], device=device)[:, None]
        among = (score[:, None, :ANOMALIES] - score[:, :ANOMALIES, None]) / 0.7
        true, false = torch.sigmoid(among).mean(2) * share, torch.sigmoid(above).mean(2) * (1.0 - share)
        loss = softplus(above).mean() + 1.0 - (true / (true + false + 1e-6)).mean()  # pairs, and average precision
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        with torch.no_grad():
            for a, b in zip(mean_net.parameters(), net.parameters(), strict=True):
                a.lerp_(b, 0.005 if step > 200 else 0.05)
    arrays = {}
    for name, value in mean_net.state_dict().items():
        _, layer, kind = name.split(".")
        array = value.cpu().numpy()
        arrays[f"{layer.replace('_', '.')}.{kind}"] = np.ascontiguousarray(array.T if kind == "weight" else array)
    write_atomic(weights_file(out, fold), save(arrays, about))
    return f"fold {fold}: loss {loss.item():.3f}, {len(copies)} copies"


def evaluate_table(task: tuple[str, str, int]) -> tuple[str, list[float]]:
    """Return AUC-PR and AUC-ROC of the default without and with the term, and of the term alone."""
    from safetensors.numpy import load_file
    from sklearn.metrics import average_precision_score, roc_auc_score

    path, out, fold = Path(task[0]), Path(task[1]), task[2]
    weights = {name: value.astype(np.float64) for name, value in load_file(weights_file(out, fold)).items()}
    pretrained.weights = lambda: weights
    table = np.load(path)
    y = table["y"].astype(bool)
    train, test = table["train"].astype(np.float64), table["test"].astype(np.float64)
    others = tuple(term for term in PRESETS["default"].terms if term.name != "pretrained")
    config = Config(terms=(*others, pretrained.PretrainedSettings(weight=WEIGHT)))
    detector = Detector.fit(train, Features.numeric(train.shape[1]), config, seed=0)
    scores = detector.term_scores(test)
    p_values = detector.calibration.p_value(scores[~y].sum(axis=1))
    parts = [scores[:, :-1].sum(axis=1), scores.sum(axis=1), scores[:, -1]]
    parts += [parts[0] + f * parts[2] for f in (1 / 3, 2 / 3, 4 / 3)]
    metrics = [f(y, s) for s in parts for f in (average_precision_score, roc_auc_score)]
    return path.stem, metrics + [float((p_values <= rate).mean()) for rate in RATES]


def read_folds() -> dict[str, int]:
    """Return the fold of every table; tables that share half of their columns' ranges are in the same fold."""
    with FOLDS.open(newline="", encoding="utf-8") as file:
        return {row["table"]: int(row["fold"]) for row in csv.DictReader(file)}


def digests(paths: list[Path], folds: dict[str, int]) -> dict[int, str]:
    """Return the SHA-256 of the tables that the network of every fold is trained on."""
    hashes = {fold: hashlib.sha256() for fold in (-1, *range(N_FOLDS))}
    for path in paths:
        content = path.read_bytes()
        for fold, digest in hashes.items():
            if folds[path.stem] != fold:
                digest.update(content)
    return {fold: digest.hexdigest() for fold, digest in hashes.items()}


def describe(folder: Path, out: Path, run_all=map) -> None:
    """Describe every table that has a fold; ``tables.json`` is written when all are described."""
    (out / "tables.json").unlink(missing_ok=True)
    folds = read_folds()
    paths = sorted(path for path in folder.glob("*.npz") if path.stem in folds)
    print(len(list(run_all(describe_table, [(str(path), str(out)) for path in paths]))), "tables", flush=True)
    about = {"folds": {path.stem: folds[path.stem] for path in paths}, "sha256": digests(paths, folds)}
    write_atomic(out / "tables.json", json.dumps(about).encode())


def train(out: Path, run_all=map) -> None:
    """Train the network that ships and one for every fold."""
    for line in run_all(train_fold, [(str(out), fold) for fold in (-1, *range(N_FOLDS))]):
        print(line, flush=True)


def evaluate(folder: Path, out: Path, run_all=map) -> None:
    """Print the gain of the term on tables that its weights were not trained on."""
    folds = json.loads((out / "tables.json").read_text())["folds"]
    paths = sorted(folder.glob("*.npz"))
    results = dict(run_all(evaluate_table, [(str(path), str(out), folds.get(path.stem, -1)) for path in paths]))
    write_atomic(out / "evaluated.json", json.dumps(results).encode())
    for group in sorted({name.split("_")[0] for name in results}):
        rows = np.array([values for name, values in results.items() if name.startswith(group)])
        gain = rows[:, 2:4] - rows[:, :2]
        error = gain.std(axis=0) / math.sqrt(len(rows))
        print(
            group,
            len(rows),
            "without, with, gain, error:",
            *(x.round(4) for x in (rows[:, :2].mean(0), rows[:, 2:4].mean(0), gain.mean(0), error)),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", choices=("describe", "train", "evaluate"))
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    args.folders[-1].mkdir(exist_ok=True)
    stage = {"describe": describe, "train": train, "evaluate": evaluate}[args.stage]
    with ProcessPoolExecutor(args.jobs) as pool:
        stage(*args.folders, pool.map)


if __name__ == "__main__":
    main()
