"""Train and evaluate the term ``pretrained``: a network that learns across tables.

    python benchmarks/pretrained_term.py describe DIR OUT   # inputs of the network, for copies of every table
    python benchmarks/pretrained_term.py train OUT          # five folds, leave-table-out, and one network on all tables
    python benchmarks/pretrained_term.py evaluate DIR OUT   # every table with the weights that never saw it

DIR holds ``.npz`` files with ``train`` (normal rows), ``test`` and ``y``. A copy of a table has fewer rows, fewer
columns, distorted columns or columns of noise, so that the network cannot learn tables by heart.

A stage that was stopped goes on when it is called again: a table that is described and a network that is trained are
kept as long as the tables they were made from are the same. After a change of the code, take a new OUT.
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
    known, held = train[order[LEFT_OUT : LEFT_OUT + n]], train[order[:LEFT_OUT]]
    picked = np.r_[rng.choice(np.flatnonzero(y), ANOMALIES), rng.choice(np.flatnonzero(~y), NORMAL)]
    rows = np.concatenate([known, test[picked], held]).astype(np.float64)
    d, start = rows.shape[1], len(known)
    if rng.random() < 0.4:  # monotone distortions
        z = (rows - known.mean(axis=0)) / (known.std(axis=0) + 1e-6)
        strength = np.exp(rng.normal(size=d))
        bent = np.where(rng.random(d) < 0.5, np.arcsinh(strength * z), np.exp(np.minimum(0.7 * z, 8.0)))
        rows = np.where(rng.random(d) < 0.4, bent, z)
    if rng.random() < 0.2:
        rows = np.where(rng.random(d) < 0.2, rng.normal(size=rows.shape), rows)
    if rng.random() < 0.4:  # dropped columns
        kept = rng.random(d) > 0.05 + 0.3 * rng.random()
        rows = rows[:, kept] if kept.sum() >= 2 else rows
    return rows[:start], rows[start:]


def describe_table(task: tuple[str, str]) -> str:
    """Write the inputs of the network for all copies of a table, unless they are there."""
    path, target = Path(task[0]), Path(task[1], Path(task[0]).name)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if target.exists():
        with np.load(target) as there:
            if str(there["table_sha256"]) == digest:
                return path.stem
    table = np.load(path)
    train, test, y = table["train"], table["test"], table["y"].astype(bool)
    rng = np.random.default_rng([7, sum(map(ord, path.stem))])
    found: dict[str, np.ndarray] = {"table_sha256": np.array(digest), "prevalence": np.array(y.mean())}
    for i in range(N_COPIES):
        known, rows = draw_copy(rng, train, test, y)
        reference = Reference(known, Features.numeric(known.shape[1]), ReferenceSettings())
        term = pretrained.Pretrained({}, reference, pretrained.PretrainedSettings(most_features=10_000))
        batch = Batch(rows, reference)
        cells, summary = term.inputs(batch)
        found |= {f"cells{i}": cells.astype(np.float16), f"summary{i}": summary.astype(np.float16)}
        found[f"simple{i}"] = simple_score(term.describe(batch)[1][:, : len(SIMPLE)])
    with NewFile(target) as temporary, temporary.open("wb") as file:
        np.savez(file, **found)
    return path.stem


def simple_score(values):
    """Return the sum of four terms in units of the left-out rows, which stands for the default's score."""
    held = values[-LEFT_OUT:]
    z = (values - held.mean(axis=0)) / (held.std(axis=0) + 0.05)
    score = (0.5 * np.logaddexp(0.0, 2.0 * z)) @ SIMPLE
    return (score / (score[-LEFT_OUT:].std() + 0.05)).astype(np.float32)


def network(torch):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            shapes = {name.replace(".", "_"): shape for name, shape in pretrained.SHAPES.items()}
            self.layers = torch.nn.ModuleDict({name: torch.nn.Linear(*shape) for name, shape in shapes.items()})
            self.drop = torch.nn.Dropout(0.1)

        def forward(self, cells, summary, mask):
            f, relu = self.layers, torch.relu
            seen = f["cell_1"](self.drop(relu(f["cell_0"](cells))))
            seen = seen + f["row_1"](self.drop(relu(f["row_0"](summary))))[..., None, :]
            active = relu(seen) * mask[..., None]
            mean = active.sum(-2) / mask.sum(-1)[..., None]
            seen = seen + f["context"](torch.cat([mean, active.amax(-2)], -1))[..., None, :]
            said = f["head_1"](self.drop(relu(f["head_0"](relu(seen)))))[..., 0]
            return torch.logsumexp(said + torch.log(mask + 1e-9), -1) - torch.log(mask.sum(-1))

    return Net()


def load_copies(folder: Path, names: list[str]):
    """Return every copy as (cells, summary, simple score, prevalence), sorted by width."""
    found = []
    for name in names:
        with np.load(folder / f"{name}.npz") as table:
            found += [
                (table[f"cells{i}"], table[f"summary{i}"], table[f"simple{i}"], float(table["prevalence"]))
                for i in range(N_COPIES)
            ]
    return sorted(found, key=lambda copy: copy[0].shape[1])


def weights_file(out: Path, fold: int) -> Path:
    """The weights of a fold; those that saw all tables have the name under which they ship."""
    return out / ("pretrained.safetensors" if fold == -1 else f"weights{fold}.safetensors")


def is_trained(path: Path, about: dict[str, str]) -> bool:
    """Whether weights of the same seed and tables are there."""
    from safetensors import safe_open

    if not path.exists():
        return False
    with safe_open(path, "np") as weights:
        return weights.metadata() == about


def train_fold(task: tuple[str, int]) -> str:
    """Train on all tables but those of a fold, unless it is done; fold -1 leaves out none."""
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
    best = torch.optim.AdamW(net.parameters(), 2e-3, weight_decay=0.05, betas=(0.9, 0.98))
    for step in range(STEPS):
        rate = min(1.0, (step + 1) / 50) * (0.05 + 0.475 * (1.0 + math.cos(math.pi * step / STEPS)))
        for group in best.param_groups:
            group["lr"] = 2e-3 * rate
        start = rng.integers(len(copies))  # copies of about the same width, from anywhere in the list
        near = np.unique(np.clip(start + rng.integers(-400, 400, size=16), 0, len(copies) - 1))
        widest = max(copies[i][0].shape[1] for i in near)
        cells = np.stack([np.pad(c := copies[i][0], ((0, 0), (0, widest - c.shape[1]), (0, 0))) for i in near])
        mask = np.stack([np.arange(widest) < copies[i][0].shape[1] for i in near]).astype(np.float32)
        batch = [cells, np.stack([copies[i][1] for i in near]), np.stack([copies[i][2] for i in near]), mask]
        x, summary, simple, real = (torch.from_numpy(a).to(device).float() for a in batch)
        value = net(x, summary, real[:, None].expand(-1, x.shape[1], -1))
        held = value[:, -LEFT_OUT:]
        z = (value - held.mean(1, keepdim=True)) / (held.std(1, keepdim=True) + 0.05)
        score = 0.35 * simple + 0.5 * softplus(2.0 * z)
        above = (score[:, None, ANOMALIES:] - score[:, :ANOMALIES, None]) / 0.7  # (tables, anomalies, normal rows)
        share = torch.tensor([copies[i][3] for i in near], device=device)[:, None]
        among = (score[:, None, :ANOMALIES] - score[:, :ANOMALIES, None]) / 0.7
        found, false = torch.sigmoid(among).mean(2) * share, torch.sigmoid(above).mean(2) * (1.0 - share)
        loss = softplus(above).mean() + 1.0 - (found / (found + false + 1e-6)).mean()  # pairs, and average precision
        best.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        best.step()
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
    held = {name: value.astype(np.float64) for name, value in load_file(weights_file(out, fold)).items()}
    pretrained.weights = lambda: held
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
    figures = [f(y, s) for s in parts for f in (average_precision_score, roc_auc_score)]
    return path.stem, figures + [float((p_values <= rate).mean()) for rate in RATES]


def read_folds() -> dict[str, int]:
    """The fold of every table; related ones, which share half of their columns' ranges, are in the same."""
    with FOLDS.open(newline="", encoding="utf-8") as file:
        return {row["table"]: int(row["fold"]) for row in csv.DictReader(file)}


def digests(paths: list[Path], folds: dict[str, int]) -> dict[int, str]:
    """SHA-256 of the tables that the network of every fold is trained on."""
    found = {fold: hashlib.sha256() for fold in (-1, *range(N_FOLDS))}
    for path in paths:
        content = path.read_bytes()
        for fold, digest in found.items():
            if folds[path.stem] != fold:
                digest.update(content)
    return {fold: digest.hexdigest() for fold, digest in found.items()}


def describe(folder: Path, out: Path, each=map) -> None:
    """Describe every table that has a fold; ``tables.json`` is there when all are described."""
    (out / "tables.json").unlink(missing_ok=True)
    folds = read_folds()
    paths = sorted(path for path in folder.glob("*.npz") if path.stem in folds)
    print(len(list(each(describe_table, [(str(path), str(out)) for path in paths]))), "tables", flush=True)
    about = {"folds": {path.stem: folds[path.stem] for path in paths}, "sha256": digests(paths, folds)}
    write_atomic(out / "tables.json", json.dumps(about).encode())


def train(out: Path, each=map) -> None:
    """Train the network that ships and one for every fold."""
    for line in each(train_fold, [(str(out), fold) for fold in (-1, *range(N_FOLDS))]):
        print(line, flush=True)


def evaluate(folder: Path, out: Path, each=map) -> None:
    """Print what the term gains on tables that its weights never saw."""
    folds = json.loads((out / "tables.json").read_text())["folds"]
    paths = sorted(folder.glob("*.npz"))
    found = dict(each(evaluate_table, [(str(path), str(out), folds.get(path.stem, -1)) for path in paths]))
    write_atomic(out / "evaluated.json", json.dumps(found).encode())
    for group in sorted({name.split("_")[0] for name in found}):
        rows = np.array([values for name, values in found.items() if name.startswith(group)])
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
