"""Jobs: fits, updates, recalibrations and scorings, each in a process of its own, with their state on the disk."""

WAITING_OR_RUNNING = ("waiting", "running")
FINAL = ("done", "failed", "cancelled")
