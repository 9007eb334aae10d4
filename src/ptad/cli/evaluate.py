"""``ptad evaluate``: metrics of a model on labelled rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ptad.cli import options
from ptad.cli.console import plural, print_json, print_pairs, rate, share

if TYPE_CHECKING:
    from ptad.jobs.evaluate import Evaluation

EXAMPLES = """
ptad evaluate model labelled.csv --label is_fraud
ptad evaluate model labelled.csv --label status --normal ok
ptad evaluate model labelled.csv --label class --anomaly attack --false-alarm-rate 0.001 --json
"""


@options.with_job_options
def evaluate(
    model: options.Model,
    table: options.Table,
    label: Annotated[str, typer.Option(help="The label column.", metavar="COLUMN", show_default=False)],
    normal: options.Normal = None,
    anomaly: Annotated[
        list[str] | None, typer.Option(help="Label value of anomalies (may be repeated).", metavar="VALUE")
    ] = None,
    job: options.Job = options.DEFAULT_JOB,
) -> None:
    """Compare scores with labels: ranking, flagged rows, and the observed false-alarm rate beside the target.

    Without --normal and --anomaly the label must be 0/1 or false/true, with 1 and true for anomalies.
    """
    from ptad.jobs.evaluate import evaluate_table
    from ptad.jobs.training_table import WARNING

    with job.scoring() as settings:
        evaluation = evaluate_table(
            model, job.source(table), label=label, normal=normal or (), anomaly=anomaly or (), **settings
        )
    if job.as_json:
        print_json(evaluation.to_json())
    else:
        print_pairs(evaluation_lines(evaluation))
    if evaluation.training_table:
        job.note(f"warning: {WARNING}")
    job.note_bad_cells(evaluation.columns_with_bad_cells)


def evaluation_lines(e: Evaluation) -> list[tuple[str, str]]:
    """Return names and values of the metrics."""
    auc_roc, auc_pr = ("not defined" if auc is None else f"{auc:.4f}" for auc in (e.auc_roc, e.auc_pr))
    interval = ""
    if e.false_alarm_interval is not None:
        low, high = e.false_alarm_interval
        interval = f"\n95 % interval {rate(low)} to {rate(high)}"
    return [
        ("rows", f"{e.rows:,}: {e.normal_rows:,} normal, {plural(e.anomalies, 'anomaly', 'anomalies')}"),
        ("AUC-ROC", auc_roc),
        ("AUC-PR", f"{auc_pr} (prevalence {e.prevalence:.4f})"),
        ("flagged", plural(e.flagged, "row", "rows")),
        ("precision", share(e.found, e.flagged, "flagged rows are anomalies")),
        ("recall", share(e.found, e.anomalies, "anomalies are flagged")),
        ("false-alarm rate", f"target {rate(e.target_false_alarm_rate)}"),
        ("", f"observed {share(e.false_alarms, e.normal_rows, 'normal rows')}{interval}"),
    ]
