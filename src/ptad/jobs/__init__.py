"""Jobs over tables of any size: fit, score, explain and evaluate, on this machine or on a Ray cluster."""

from collections.abc import Callable

#: Called with the number of rows so far, and of all rows where it is known.
Progress = Callable[[int, int | None], None]
