"""A script as a user writes it, over the whole public face: it runs, and pyright accepts it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from ptad import PTAD, Config, DataError, Explanation, MissingExtraError, Model, SettingError, UserError

matplotlib.use("Agg")

rng = np.random.default_rng(0)
array = rng.normal(size=(150, 3))
table = pd.DataFrame(array, columns=["a", "b", "c"]).assign(mode=np.where(array[:, 0] > 0, "eco", "sport"))

# fit on a table and on arrays
detector: PTAD = PTAD(
    "default",
    false_alarm_rate=0.05,
    config={"rare_pair.weight": 1.0},
    device="cpu",
    missing=["?"],
    drop=["c"],
    random_state=0,
    verbose=0,
).fit(table)
of_array = PTAD(verbose=0).fit(array)
of_lists = PTAD(false_alarm_rate="auto", verbose=0).fit(array.tolist(), None)
of_records = PTAD(verbose=0).fit(table.to_dict("records"))
of_columns = PTAD(verbose=0).fit({"a": array[:, 0], "b": array[:, 1]})

# numpy in, numpy out: the type is known
largest: float = of_array.anomaly_score(array).max()
smallest: float = of_array.p_value(array).min()
from_lists: np.ndarray = of_lists.anomaly_score([[1.0, 2.0, 3.0]])

# the methods of scikit-learn give numpy whatever comes in
labels: np.ndarray = detector.predict(table)
n_flagged = int((labels == -1).sum())
margin: float = detector.decision_function(table).min()
samples: np.ndarray = detector.score_samples(table)
residuals: np.ndarray = detector.transform(table)
names: list[str] = detector.get_feature_names_out().tolist()
both = PTAD(false_alarm_rate=0.3, verbose=0).fit_predict(array)

# the methods of ptad give what came in
series: pd.Series = detector.anomaly_score(table)
flagged = table[detector.p_value(table) <= detector.false_alarm_rate_]
of_polars: pl.Series = detector.anomaly_score(pl.from_pandas(table))
of_arrow: np.ndarray = detector.anomaly_score(pa.Table.from_pandas(table))
terms: pd.DataFrame = detector.term_scores(table)

# explanations
why: Explanation = detector.explain(table.head(3))
strongest: list[list[str]] = why.top(2)
total: float = why.contribution_values.sum() - why.score_values.sum()
share: float = why.percentage_values.max()
observed: pd.DataFrame = why.observed
wanted: pd.DataFrame = why.expected
reasons: pd.DataFrame = why.reasons
percentages: pd.DataFrame = why.percentages
text: str = repr(why)
axes = why.plot(row=0, n=5)

# the threshold, new rows
rate: float = detector.set_false_alarm_rate(0.1).false_alarm_rate_
threshold: float = -detector.offset_
detector.update(table).recalibrate(table)
held_out: np.ndarray = detector.held_out_scores_
settings: Config = detector.config_
as_json: dict[str, object] = settings.replace({"rare_pair.weight": 0.5}).to_json()

# figures
detector.plot.scores(table)
detector.plot.scores(table, labels=np.zeros(len(table)), ax=axes).set_title("scores")
detector.plot.cells(table, top=5)

# files
with tempfile.TemporaryDirectory() as folder:
    detector.save(Path(folder) / "model")
    again = PTAD.load(Path(folder) / "model", device="cpu")
    light: Model = Model.load(f"{folder}/model", device="cpu")
light_scores: pd.Series = light.set_false_alarm_rate("auto").anomaly_score(table)
light_why: Explanation = light.explain(table.head(1))
light.plot.cells(table.head(5))
same: bool = bool((again.anomaly_score(table) == light_scores).all())

# errors
try:
    detector.anomaly_score(table["a"])
except (DataError, SettingError, MissingExtraError) as error:
    message: str = str(error)
    user_error: UserError = error
