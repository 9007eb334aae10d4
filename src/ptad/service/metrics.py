"""Metrics for Prometheus; counts and times only, no data."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.25, 0.5, 1, 2.5, 10, 60)
CALLS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """The metrics of one service."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        labels = ["method", "route", "status"]
        self.requests = Counter("ptad_requests_total", "Answers, by address and status", labels, registry=registry)
        self.seconds = Histogram(
            "ptad_request_seconds", "Time to answer", ["route"], buckets=SECONDS, registry=registry
        )
        self.rows = Counter("ptad_rows_scored_total", "Rows scored", ["how"], registry=registry)
        self.batch_calls = Histogram(
            "ptad_batch_calls", "Calls that were scored together", buckets=CALLS, registry=registry
        )
        self.batch_seconds = Histogram(
            "ptad_batch_seconds", "Time to score a batch", buckets=SECONDS, registry=registry
        )
        self.jobs = Gauge("ptad_jobs", "Jobs, by state", ["state"], registry=registry)
        self.models = Gauge("ptad_models", "Models that are served", registry=registry)

    def batch(self, n_calls: int, n_rows: int, seconds: float) -> None:
        """Count a batch of small calls."""
        self.batch_calls.observe(n_calls)
        self.batch_seconds.observe(seconds)
        self.rows.labels("small").inc(n_rows)

    def text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self.registry)
