"""The report in a real Chromium."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from ptad.report import ReportSettings, write_report
from ptad.report.writing import make_page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

HOSTILE = ["<img src=x onerror=alert(1)>", "</script><script>alert(1)</script>", '=HYPERLINK("http://example.org")']


@pytest.fixture
def report(model, table, tmp_path) -> Path:
    table["city"] = table["city"].astype(object)
    table.loc[[3, 5, 7], "city"] = HOSTILE
    truth = ["bad" if i in (3, 5, 7) else "good" for i in range(len(table))]
    settings = ReportSettings(label="truth", normal=("good",), top=30)
    write_report(model, table.assign(truth=truth), tmp_path / "report.html", settings)
    return tmp_path / "report.html"


class Page:
    """An open report that remembers everything it should not do."""

    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.context.set_default_timeout(600_000)  # only against hanging
        self.page = self.context.new_page()
        self.trouble: list[str] = []
        self.page.on("console", lambda m: self.trouble.append(f"console {m.type}: {m.text}"))
        self.page.on("pageerror", lambda e: self.trouble.append(f"error: {e}"))
        self.page.on("dialog", lambda d: (self.trouble.append(f"dialog: {d.message}"), d.dismiss()))
        self.page.on("request", lambda r: r.url == path.as_uri() or self.trouble.append(f"request: {r.url}"))
        self.page.goto(path.as_uri())

    def text(self, selector: str) -> str:
        return self.page.locator(selector).first.inner_text()

    def close(self) -> None:
        self.context.close()
        assert self.trouble == []


@pytest.fixture
def opened(browser, report) -> Iterator[Page]:
    page = Page(browser, report, viewport={"width": 1200, "height": 900})
    yield page
    page.close()


def flagged_count(opened: Page) -> int:
    found = re.match(r"(No row|[\d,]+ rows?) of 120", opened.text("#threshold-text"))
    assert found
    return 0 if found.group(1) == "No row" else int(found.group(1).split()[0].replace(",", ""))


def test_opens_quietly_and_fills_every_section(opened):
    assert opened.text("h1") == "Anomaly report: a table in memory"
    for section in ("headline", "cards", "fitted", "top", "drivers", "drift", "synthetic", "settings"):
        assert opened.text(f"#{section}").strip() or opened.page.locator(f"#{section} svg").count()
    assert opened.page.locator("#score-chart svg").count() == 1
    assert "Unseen categories: city (3 rows)" in opened.text("#cells")
    assert opened.page.locator("#history").count() == 0  # nothing is trained by the default preset


def test_slider_recounts_and_recolours(opened):
    before = flagged_count(opened)
    edge = opened.page.locator("#beyond rect")
    x = float(edge.get_attribute("x"))
    opened.page.locator("#threshold").focus()
    opened.page.keyboard.press("Home")
    assert flagged_count(opened) > before
    assert float(edge.get_attribute("x")) < x
    opened.page.keyboard.press("End")
    assert flagged_count(opened) <= 1
    assert opened.page.locator("#top tr.row.below").count() >= 19
    opened.page.locator("#reset").click()
    assert flagged_count(opened) == before
    assert float(edge.get_attribute("x")) == x


def test_click_and_keys_show_an_explanation(opened):
    row = opened.page.locator("#top tr.row").first
    opener = opened.page.get_by_role("button", name="Why row").first
    row.click()
    assert opener.get_attribute("aria-expanded") == "true"
    shown = opened.text("#top tr.explanation")
    assert "above the threshold of" in shown and "p-value" in shown and "Terms of the score" in shown
    assert "Expected" in shown and "Reason" in shown
    assert opened.page.locator("#top tr.explanation .bar").count() >= 5
    row.click()
    assert opened.page.locator("#top tr.explanation").count() == 0
    for key in ("Enter", " "):
        opener.focus()
        opened.page.keyboard.press(key)
        assert opened.page.locator("#top tr.explanation").count() == (1 if key == "Enter" else 0)


def test_headings_sort(opened):
    def scores() -> list[float]:
        return [
            float(t.replace(",", ""))
            for t in opened.page.locator("#top tr.row:visible td:nth-child(2)").all_inner_texts()
        ]

    assert scores() == sorted(scores(), reverse=True)
    opened.page.locator("#top tr.row").first.click()
    heading = opened.page.locator("#top thead th").nth(1)
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    assert scores() == sorted(scores())
    opened.page.get_by_role("button", name="Show all 30 rows").click()
    assert len(scores()) == 30
    assert scores() == sorted(scores())
    # the explanation moved along with its row, which is now the last
    assert opened.page.locator("#top tbody tr").last.get_attribute("class") == "explanation"
    opened.page.locator("#top thead th").nth(0).locator("button").click()
    rows = [int(t) for t in opened.page.locator("#top .opener").all_inner_texts()]
    assert rows == sorted(rows, reverse=True)


def test_hostile_cells_are_only_text(opened):
    assert opened.page.locator("img").count() == 0
    for row in opened.page.locator("#top tr.row").all()[:5]:
        row.click()
    text = opened.text("#top")
    for value in HOSTILE:
        assert value in text
    assert opened.page.locator("#top a, #top script").count() == 0


def test_known_anomalies_are_counted(opened):
    assert re.search(r"[0-3] of the 3 known anomalies are found", opened.text("#threshold-text"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_phone_and_both_schemes(browser, report, scheme):
    page = Page(browser, report, viewport={"width": 360, "height": 740}, color_scheme=scheme)
    first = page.page.locator("#top tr.row").first
    first.click()
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 360
    # a row is a card: nothing scrolls sideways, its main reason is the first cell and the reddest
    assert page.page.evaluate("(e => e.scrollWidth - e.clientWidth)(document.querySelector('#top'))") == 0
    cells = first.locator(".strongest > .heat")
    assert page.text("#top .explanation .column") in cells.first.get_attribute("title")
    main = first.locator("td.main")
    assert main.is_visible() and page.text("#top .explanation .column") in main.inner_text()
    assert all(cell.is_visible() for cell in cells.all()) and not first.locator("td.cell").first.is_visible()
    heats = cells.evaluate_all("all => all.map((cell) => parseFloat(cell.style.getPropertyValue('--heat')))")
    assert heats == sorted(heats, reverse=True) and heats[0] == 65
    scores = page.page.locator("#top tr.row:visible td.score")
    page.page.locator("#top thead button", has_text="Score").click()  # the headings that are left still sort
    found = [float(text.replace(",", "")) for text in scores.all_text_contents()]
    assert found == sorted(found)
    colour = page.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert colour == ("rgb(245, 246, 248)" if scheme == "light" else "rgb(17, 21, 27)")
    page.page.set_viewport_size({"width": 1280, "height": 900})
    contrast = page.page.evaluate((Path(__file__).parents[1] / "service" / "contrast.js").read_text())
    assert contrast["checked"] > 200 and contrast["found"] == []
    page.close()


def test_prints_without_its_controls(opened):
    opened.page.emulate_media(media="print", color_scheme="dark")
    assert not opened.page.locator("#threshold").is_visible()
    assert opened.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert opened.page.pdf(format="A4").startswith(b"%PDF")


def test_without_values_the_page_still_explains(browser, model, table, tmp_path):
    write_report(model, table, tmp_path / "r.html", ReportSettings(rows=False))
    page = Page(browser, tmp_path / "r.html")
    page.page.locator("#top tr.row").first.click()
    assert "Contribution" in page.text("#top tr.explanation")
    assert "unseen category" in page.text("#top tr.explanation")
    assert "Expected" not in page.text("#top tr.explanation")
    assert "made without values" in page.text("#top-note")
    page.close()


NAMES = ("number_of_vehicles_involved", "totalClaimAmountIncludingTaxes", "Use", "policy-annual-premium.in.euro")


@pytest.fixture(scope="module")
def long_names(model, tmp_path_factory) -> Path:
    """A report on columns with long names, of whose rows the highest score is far from the others."""
    from ptad import PTAD

    rng = np.random.default_rng(0)
    values = rng.gamma(2.0, 20_000.0, size=(500, len(NAMES))).round()
    fitted = PTAD(verbose=0, device="cpu").fit(pd.DataFrame(values[:300], columns=list(NAMES)))
    new = pd.DataFrame(values[300:], columns=list(NAMES))
    new.loc[0, NAMES[1]] = 50_930_000
    path = tmp_path_factory.mktemp("long") / "r.html"
    write_report(fitted, new, path)
    return path


# for every name: the words it is broken into on the screen
LINES = """(selector) => [...document.querySelectorAll(selector)].filter((e) => e.offsetParent).map((e) => {
  const range = document.createRange(), lines = [];
  const walk = document.createTreeWalker(e, NodeFilter.SHOW_TEXT);
  let last = null;
  for (let node = walk.nextNode(); node; node = walk.nextNode())
    for (let i = 0; i < node.length; i += 1) {
      range.setStart(node, i);
      range.setEnd(node, i + 1);
      const top = Math.round(range.getBoundingClientRect().top);
      if (last === null || Math.abs(top - last) > 4) lines.push('');
      lines[lines.length - 1] += node.data[i];
      last = top;
    }
  return lines;
})"""
WORD = re.compile(r"[A-Z]?[a-z]+|[_.-]")


@pytest.mark.parametrize("width", [1440, 1280, 768, 390])
def test_names_break_between_words_and_nothing_is_clipped(browser, long_names, width):
    page = Page(browser, long_names, viewport={"width": width, "height": 900})
    page.page.locator("#top tr.row").first.click()
    assert page.page.evaluate("document.documentElement.scrollWidth") <= width
    clipped = page.page.evaluate(
        """[...document.querySelectorAll('th, td.main, .column, .bars > div, .scroll, dt')]
        .filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.textContent)"""
    )
    assert clipped == []
    found = page.page.evaluate(
        LINES, "#top th.cell button, td.main b, .explanation .column, #drivers > div, #drift tbody th"
    )
    broken = [lines for lines in found if "".join(lines) in NAMES and len(lines) > 1]
    assert any("".join(lines) in NAMES for lines in found)
    for lines in broken:
        words = WORD.findall("".join(lines))
        ends, at = set(), 0
        for word in words:
            at += len(word)
            ends.add(at)
        assert {len("".join(lines[: i + 1])) for i in range(len(lines))} <= ends, lines
    main = page.page.locator("#top td.main").first  # the main reason is on the screen
    box = main.bounding_box()
    assert box and box["x"] >= 0 and box["x"] + box["width"] <= width
    page.close()


def test_numbers_are_written_for_people(browser, long_names):
    page = Page(browser, long_names, viewport={"width": 1280, "height": 900})
    assert "50,930,000" in page.text("#top tr.row")
    page.close()


def test_the_slider_is_red_where_rows_are_flagged(browser, report):
    page = Page(browser, report, viewport={"width": 1200, "height": 900}, color_scheme="light")
    slider = page.page.locator("#threshold")
    image = Image.open(io.BytesIO(slider.screenshot())).convert("RGB")
    at = float(slider.evaluate("e => e.value / e.max"))
    middle = image.height // 2
    left, right = (image.getpixel((int(image.width * x), middle)) for x in (at / 2, (1 + at) / 2))
    assert left[2] > left[0] + 50, left  # blue
    assert right[0] > right[2] + 50, right  # red
    page.close()


BARS = """[...document.querySelectorAll('#score-chart g:first-of-type rect')].map((e) => ({
  x: Number(e.getAttribute('x')), width: Number(e.getAttribute('width')), height: Number(e.getAttribute('height')),
}))"""


def test_bins_follow_a_rule_and_the_threshold_lies_between_two(browser, model, rows_of, tmp_path):
    found = {}
    for n_rows in (60, 3000):
        write_report(model, rows_of(n_rows, 8), tmp_path / "r.html")
        page = Page(browser, tmp_path / "r.html", viewport={"width": 1200, "height": 900})
        bars = found[n_rows] = page.page.evaluate(BARS)
        assert 12 <= len(bars) <= 90
        inner = [bar["width"] for bar in bars[1:-1]]
        assert max(inner) - min(inner) < 0.01
        line = float(page.page.locator(".stroke-mark").get_attribute("x1"))
        assert min(abs(bar["x"] - 0.5 - line) for bar in bars) < 0.01
        page.close()
    assert found[3000][5]["width"] < found[60][5]["width"]  # more rows, finer bins
    heights = [bar["height"] for bar in found[3000]]
    filled = [i for i, height in enumerate(heights) if height > 0.2 * max(heights)]
    assert all(heights[i] > 0 for i in range(filled[0], filled[-1]))  # no gaps like those of a comb


def test_scores_over_time_are_drawn_said_and_listed(browser, model, rows_of, tmp_path):
    write_report(model, rows_of(400, 3), tmp_path / "r.html")
    page = Page(browser, tmp_path / "r.html", viewport={"width": 1200, "height": 900})
    section = page.page.locator("[aria-label='Scores over time']")
    assert section.locator("canvas[role=img]").count() == 2
    assert "Flag rate by month" in section.locator("canvas").first.get_attribute("aria-label")
    assert "Rows by month of day, from Jan 2024 to Dec 2024. The highest flag rate is" in page.text("#over-time")
    section.locator("summary").click()
    assert section.locator("details tbody tr").count() == 12
    page.close()


def test_a_wrong_year_does_not_squeeze_the_chart(browser, model, rows_of, tmp_path):
    rows = rows_of(400, 3)
    rows.loc[0, "day"] = pd.Timestamp("1914-10-17")
    write_report(model, rows, tmp_path / "r.html")
    page = Page(browser, tmp_path / "r.html", viewport={"width": 1200, "height": 900})
    text = page.text("#over-time")
    assert "from Oct 1914 to Dec 2024" in text and text.endswith(
        "Dates far away, with few rows, are in the table only."
    )
    section = page.page.locator("[aria-label='Scores over time']")
    section.locator("summary").click()
    assert section.locator("details tbody tr").count() == 13
    page.close()


def test_notes_stand_above_the_rest(browser, model, rows_of, tmp_path):
    write_report(model, rows_of(240, 0), tmp_path / "r.html")
    page = Page(browser, tmp_path / "r.html")
    assert "scored by a model that was fitted without it" in page.text("#notes")
    assert page.page.locator("#notes").bounding_box()["y"] < page.page.locator("#headline").bounding_box()["y"]
    page.close()


@pytest.mark.parametrize(
    ("cells", "text"),
    [(1, "1 cell could not be read and counts as missing: width (1)."), (12, "12 cells could not be read and count")],
)
def test_cells_that_could_not_be_read_are_a_note(browser, model, table, tmp_path, cells, text):
    content = write_report(model, table, tmp_path / "r.html")
    page = make_page(content | {"bad": {"cells": cells, "columns": [["width", cells]]}})
    (tmp_path / "bad.html").write_text(page, "utf-8")
    opened = Page(browser, tmp_path / "bad.html")
    assert text in opened.text("#bad-cells")
    opened.close()


FORBIDDEN = (
    r"strange|judg|alarm level|raise[sd]? an alarm|promis|(?<!scikit-)learn|left out|steady|made.up|on purpose|twin|"
    r"1 in \d|\d in 10\b|\de\+|\bNaN\b|undefined|\b1 (?:rows|columns|anomalies)\b|"
    r"rows? of 1\b(?!,)|other 1\b|\b(\S+) to \1\b"
)


def test_the_pattern_finds_what_it_is_there_for():
    for text in ("from 0 to 0 rows", "1 anomalies", "10 in 10", "5.093e+04", "1 row of 1", "The other 1 column"):
        assert re.search(FORBIDDEN, text), text


@pytest.mark.parametrize("n_rows", [1, 5, 120])
def test_words_and_numbers_are_those_of_the_field(browser, model, table, tmp_path, n_rows):
    write_report(model, table.head(n_rows), tmp_path / "r.html")
    page = Page(browser, tmp_path / "r.html")
    page.page.locator("#top tr.row").first.click()
    page.page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    text = page.page.locator("body").inner_text()
    assert [found.group(0) for found in re.finditer(FORBIDDEN, text)] == []
    if n_rows < 20:
        assert "too few rows to tell" in page.text("#drift-note").lower()
        assert "%" not in page.text("#headline")
    page.close()
