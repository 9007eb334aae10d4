"""Jobs: fits, updates and scorings, each in a process of its own, their state on disk."""
