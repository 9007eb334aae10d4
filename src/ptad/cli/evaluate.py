"""``ptad evaluate``: how good a model is on labelled rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ptad.cli import options
from ptad.cli.console import figure, plural, print_json, print_pairs, rate, share

if TYPE_CHECKING:
    from ptad.jobs.evaluate import Evaluation

EXAMPLES = """
ptad evaluate model labelled.csv --label is_fraud
ptad evaluate model labelled.csv --label status --normal ok
ptad evaluate model labelled.csv --label class --anomaly attack --false-alarm-rate 0.001 --json
"""


@options.with_job
def evaluate(
    model: options.Model,
    table: options.Table,
    label: Annotated[str, typer.Option("--label", help="The label column.", metavar="COLUMN", show_default=False)],
    normal: options.Normal = None,
    anomaly: Annotated[
        list[str] | None,
        typer.Option("--anomaly", help="Label value of anomalies (may be repeated).", metavar="VALUE"),
    ] = None,
    job: options.Job = options.AS_IT_IS,
) -> None:
    """Compare scores with labels: ranking, flagged rows, and the observed false-alarm rate beside the target.

    Without --normal and --anomaly the label must be 0/1 or false/true, with 1 and true for anomalies.
    """
    from ptad.jobs.evaluate import evaluate_table
    from ptad.jobs.training_table import WARNING

    with job.scoring() as settings:
        found = evaluate_table(
            model, job.source(table), label=label, normal=normal or (), anomaly=anomaly or (), **settings
        )
    if job.as_json:
        print_json(found.to_json())
    else:
        print_pairs(evaluation_lines(found))
    if found.training_table:
        job.say(f"warning: {WARNING}")
    job.say_bad_cells(found.columns_with_bad_cells)


def evaluation_lines(found: Evaluation) -> list[tuple[str, str]]:
    """The figures in words."""
    interval = ""
    if found.false_alarm_interval is not None:
        low, high = found.false_alarm_interval
        interval = f"\n95 % interval {rate(low)} to {rate(high)}"
    return [
        ("rows", f"{found.rows:,}: {found.normal_rows:,} normal, {plural(found.anomalies, 'anomaly', 'anomalies')}"),
        ("AUC-ROC", figure(found.auc_roc)),
        ("AUC-PR", f"{figure(found.auc_pr)} (prevalence {found.prevalence:.4f})"),
        ("flagged", plural(found.flagged, "row", "rows")),
        ("precision", share(found.found, found.flagged, "flagged rows are anomalies")),
        ("recall", share(found.found, found.anomalies, "anomalies are flagged")),
        ("false-alarm rate", f"target {rate(found.target_false_alarm_rate)}"),
        ("", f"observed {share(found.false_alarms, found.normal_rows, 'normal rows')}{interval}"),
    ]
