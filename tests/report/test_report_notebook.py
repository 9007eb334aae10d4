"""Models and explanations as text and in a notebook: complete, in plain words, and safe whatever a cell holds."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import polars as pl
import pytest

from ptad import PTAD, Model
from ptad.report.notebook import written_reasons

EVIL = "<script>alert(1)</script>"
PARTS = {"style", "div", "table", "caption", "span", "thead", "tbody", "tr", "th", "td", "b"}


class Page(HTMLParser):
    """Which tags a page has, and the texts between them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert {name for name, _ in attrs} <= {"class", "style"}

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.fixture
def evil(model, table) -> pd.DataFrame:
    """Cells, a column and an index that hold markup, a line break and a command to a terminal."""
    return table.assign(city=EVIL, note="one\ntwo\x1b[31m").rename(index={3: "<b>three</b>"})


def test_an_explanation_is_a_table_per_row(model, table):
    explanation = model.explain(table.loc[[3, 5]])
    page = Page(explanation._repr_html_())
    assert page.tags.count("table") == 2 and set(page.tags) == PARTS - {"b"}
    assert [t for t in page.texts if t in ("column", "observed", "expected", "contribution", "reason")] == 2 * [
        "column", "observed", "expected", "contribution", "reason",
    ]  # fmt: skip
    first = page.texts.index("length")
    assert page.texts[first + 1] == "80" and page.texts[first + 4] == "unusual value"
    assert re.fullmatch(r"\d\d %", page.texts[first + 3])
    assert {"Neverland", "unseen category", "Row 1 (index 5) "} <= set(page.texts)


def test_whatever_a_cell_holds_is_text(model, evil):
    explanation = model.explain(evil)
    page = Page(explanation._repr_html_())
    assert set(page.tags) <= PARTS and "script" not in page.tags and "b" not in page.tags
    assert EVIL in page.texts
    text = repr(explanation)
    assert EVIL in text and "\x1b" not in text and "one\ntwo" not in text
    assert len(text.splitlines()) == 7  # a heading, five rows, and how many more there are


def test_a_name_of_a_column_is_text(rows):
    model = PTAD(verbose=0).fit(pd.DataFrame(rows, columns=["<i>a</i>", "b", "c", "d"]))
    explanation = model.explain(pd.DataFrame([[90.0, 0, 0, 0]], columns=["<i>a</i>", "b", "c", "d"]))
    page = Page(explanation._repr_html_())
    assert "i" not in page.tags and "<i>a</i>" in page.texts


def test_long_explanations_show_the_first_rows(model, table):
    html = model.explain(table)._repr_html_()
    assert Page(html).tags.count("table") == 5 and "and 115 more rows" in html
    assert "more row" not in model.explain(table[:5])._repr_html_()
    assert "and 1 more row<" in model.explain(table[:6])._repr_html_()


def test_text_of_an_explanation_names_the_strongest_columns(model, table):
    text = repr(model.explain(table.loc[[7]]))
    assert text.startswith("Explanation of 1 row\n  row 0 (index 7): score ")
    assert re.search(r"; length = 90 \(expected [\d.]+\), unusual value, \d\d %", text)


@pytest.mark.parametrize("library", ["polars", "arrow", "array"])
def test_every_library_reads_alike(model, table, library, detector, rows):
    pandas = model.explain(table[:3])
    if library == "array":
        assert "row 0: score" in repr(detector.explain(rows[:2]))
        return
    other = pl.from_pandas(table[:3]) if library == "polars" else pl.from_pandas(table[:3]).to_arrow()
    assert repr(model.explain(other)) == repr(pandas)
    assert model.explain(other)._repr_html_() == pandas._repr_html_()


def test_percentages_below_one_are_no_zero(model, table):
    percentages = model.explain(table).percentage_values
    row = int(np.flatnonzero(((percentages > 0.0) & (percentages < 0.5)).any(axis=1))[0])
    texts = Page(model.explain(table[row : row + 1])._repr_html_()).texts
    assert texts.count("<1 %") == ((percentages[row] > 0.0) & (percentages[row] < 0.5)).sum() > 0
    assert texts.count("0 %") <= (percentages[row] == 0.0).sum()


def test_a_fitted_model_says_what_it_is(model, model_folder):
    for held in (model, Model.load(model_folder, device="cpu")):
        page = Page(held._repr_html_())
        assert set(page.tags) <= PARTS
        assert page.texts[page.texts.index("preset") + 1] == "default"
        assert page.texts[page.texts.index("training rows") + 1].startswith("240")
        columns = page.texts[page.texts.index("columns") + 1]
        assert columns.startswith("6: 2 ") and "1 text" in columns and "1 boolean" in columns
        assert float(page.texts[page.texts.index("threshold") + 1]) == pytest.approx(-model.offset_, rel=1e-3)
        assert page.texts[page.texts.index("false-alarm rate") + 1] == "1 % (target)"
        assert page.texts[page.texts.index("nearest row") + 1] == "3"
        assert "Atlantis" in page.texts[page.texts.index("excluded columns") + 1]


def test_text_of_a_model(model_folder):
    text = repr(Model.load(model_folder, device="cpu"))
    assert text.startswith("Fitted Model\n") and "false-alarm rate  1 % (target)" in text and "rare pair 0.75" in text


def test_a_model_without_a_threshold_says_so(rows):
    model = PTAD(config={"calibration.method": "none"}, verbose=0).fit(rows)
    assert "none: fitted without calibration" in model._repr_html_()


def test_what_a_notebook_asks_for(model):
    bundle = model._repr_mimebundle_()
    assert bundle["text/html"] == model._repr_html_() and bundle["text/plain"] == repr(model)
    before = PTAD(false_alarm_rate=0.05)._repr_mimebundle_()  # scikit-learn's own diagram
    assert before["text/plain"] == "PTAD(false_alarm_rate=0.05)" and "sk-" in before["text/html"]
    assert "sk-" in PTAD()._repr_html_() and "Fitted PTAD" not in PTAD()._repr_html_()


def test_nothing_observed_is_written_as_expected(model, table):
    """A value that reads like the expected one says nothing."""
    found = [r for row in range(20) for r in written_reasons(model.explain(table[row : row + 1]), 0, 6)]
    assert sum(r.expected == "" for r in found) > 10 and not [r for r in found if r.observed == r.expected]
