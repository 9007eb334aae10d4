"""The report in a real Chromium."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ptad.report import ReportSettings, write_report

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
    assert "unusual value" in page.text("#top tr.explanation")
    assert "Expected" not in page.text("#top tr.explanation")
    assert "shows no values" in page.text("#top-note")
    page.close()


FORBIDDEN = (
    r"strange|judg|alarm level|raise[sd]? an alarm|promis|(?<!scikit-)learn|left out|steady|made.up|on purpose|twin|"
    r"1 in \d|\d in 10\b|\de\+|\bNaN\b|undefined|\b1 (rows|columns|anomalies)\b|\b(\S+) to \1\b"
)


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
