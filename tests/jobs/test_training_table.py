"""The training table is recognised, and no other table is taken for it."""

import numpy as np
import pytest

from ptad.jobs.training_table import TrainingTable, row_hashes


def found(reference, *parts):
    table = TrainingTable(reference)
    for part in parts:
        table.add(part)
    return table.detected


@pytest.fixture
def reference():
    rows = np.random.default_rng(0).normal(size=(200, 4))
    rows[::7, 1] = np.nan
    rows[::11, 2] = 0.0
    return rows


def test_the_same_rows_in_any_order_and_among_others(reference):
    rng = np.random.default_rng(1)
    shuffled = reference[rng.permutation(200)]
    assert found(reference, shuffled[:90], shuffled[90:])
    assert found(reference, np.concatenate([rng.normal(size=(500, 4)), reference]))
    assert found(reference, np.where(reference == 0, -0.0, reference))


def test_a_part_of_them_or_other_rows_are_not(reference):
    rng = np.random.default_rng(1)
    assert not found(reference, reference[:190])
    assert not found(reference, rng.normal(size=(5000, 4)))
    assert not found(reference, *[reference[:100]] * 2)  # twice the same half is no whole
    changed = reference.copy()
    changed[:, 0] = np.nextafter(changed[:, 0], np.inf)
    assert not found(reference, changed)


def test_a_part_of_them_among_new_rows_is_repeated():
    rng = np.random.default_rng(2)
    reference, new = rng.normal(size=(200, 4)), rng.normal(size=(60, 4))
    stopped = np.repeat(reference[:1], 300, axis=0)  # many equal rows, of which one was a reference row
    for table, expected in (
        (reference[:100], True),
        (np.concatenate([reference[:60], new]), True),
        (np.concatenate([reference[:10], new]), False),
        (np.concatenate([stopped, new]), False),
        (new, False),
    ):
        training = TrainingTable(reference)
        training.add(table)
        assert training.repeated is expected


def test_rows_that_many_tables_have_tell_nothing():
    rng = np.random.default_rng(0)
    categories = rng.integers(0, 2, size=(500, 3)).astype(np.float64)
    assert not found(categories, categories)
    assert not found(rng.normal(size=(19, 3)), rng.normal(size=(19, 3)))


def test_hashes_differ_where_rows_differ():
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 50, size=(200_000, 3)).astype(np.float64)  # small whole numbers have few bits that differ
    assert len(np.unique(row_hashes(rows))) == len(np.unique(rows, axis=0))
    swapped = np.array([[1.0, 2.0], [2.0, 1.0]])
    assert len(set(row_hashes(swapped).tolist())) == 2
