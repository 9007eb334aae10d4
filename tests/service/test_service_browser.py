"""The page in a real Chromium, against a real service."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest
from service_page import Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def empty(start) -> Any:
    """A service without any model."""
    return start()


def flagged(page: Page) -> int:
    match = re.match(r"(No row|[\d,]+ rows?) of", page.text("#threshold-text"))
    assert match
    return 0 if match.group(1) == "No row" else int(match.group(1).split()[0].replace(",", ""))


def test_from_an_empty_start_to_explained_rows_and_files(browser, empty, csv_bytes, tmp_path):
    """Upload, correct a column, watch a fit, reload and cancel it, fit, slide, click, download, score again."""
    hostile = csv_bytes + b'50,-50,3,"<img src=x onerror=alert(1)>",ok\n'
    (tmp_path / "first.csv").write_bytes(hostile)
    opened = Page(browser, empty.url, viewport={"width": 1200, "height": 900})
    page = opened.page
    page.wait_for_selector("#example")
    assert "Drop a table here" in opened.text("main")

    page.set_input_files("#file", tmp_path / "first.csv")
    page.wait_for_selector("#fit")
    assert opened.text("h1") == "first.csv"
    page.get_by_label("Use n", exact=True).uncheck()
    page.get_by_label("Type of colour").select_option("text")
    page.select_option("#label", "state")
    assert not page.get_by_label("Use state").is_checked()
    assert page.locator(".values input:checked").input_value() == "ok"
    page.select_option("#preset", "paper")
    page.fill("#steps", "600")
    held = empty.stops.add("*/checkpoint/*.safetensors", 5, how="hold")
    page.click("#fit")
    page.wait_for_selector("#loss canvas")
    address = page.url
    held.wait(empty.log.read_text)
    page.reload()  # in the middle of the fit
    page.wait_for_selector("#cancel")
    assert page.url == address and opened.text("h1") == "Fitting first"
    page.wait_for_selector("#loss canvas")  # the curve is back from its beginning
    held.release()
    page.click("#cancel")
    page.get_by_role("link", name="Back to the table").click()

    page.wait_for_selector("#fit")
    page.get_by_label("Use n", exact=True).uncheck()
    page.select_option("#label", "state")
    page.click("#fit")  # the default preset
    page.wait_for_selector("#threshold")
    assert "fitted without it" in opened.text("#held-out")

    assert "anomalies of the training table are found" in opened.text("#threshold-text")
    before = flagged(opened)
    edge = page.locator("#beyond rect")
    x = float(edge.get_attribute("x"))
    page.focus("#threshold")
    page.keyboard.press("Home")
    assert flagged(opened) > before and float(edge.get_attribute("x")) < x
    page.keyboard.press("End")
    assert flagged(opened) <= 1
    page.click("#reset")
    assert flagged(opened) == before
    page.keyboard.press("Tab")
    first = page.locator("#top tr.row").first
    assert "<img src=x onerror=alert(1)>" in first.inner_text()
    assert page.locator("main img").count() == 0
    first.locator("button").focus()
    page.keyboard.press("Enter")
    shown = opened.text("#top tr.explanation")
    assert "the threshold of" in shown and "Expected" in shown and "Reason" in shown
    first.click()
    assert page.locator("#top tr.explanation").count() == 0
    assert "drifted" in opened.text("[aria-label='Drift since training']")

    for label, name in (("Download as CSV", "scored.csv"), ("Download as Parquet", "scored.parquet")):
        with page.expect_download() as download:
            page.get_by_role("button", name=label).click()
        download.value.save_as(tmp_path / name)
    table = pq.read_table(tmp_path / "scored.parquet")
    assert table.num_rows == 201 and table.column_names[6:9] == ["p_value", "anomaly", "why_1"]
    assert pcsv.read_csv(tmp_path / "scored.csv")["score"].to_pylist() == table["score"].to_pylist()
    assert "'=1+1" in (tmp_path / "scored.csv").read_text()

    page.click("nav a[href='#/models']")
    page.get_by_role("link", name="first", exact=True).click()
    page.wait_for_selector("#second-file", state="attached")
    page.fill("#rate", "20")
    page.get_by_role("button", name="Change").click()
    page.wait_for_selector("#news:not([hidden])")
    assert "target false-alarm rate is now 20" in opened.text("#news")
    (tmp_path / "other.csv").write_bytes(b"a,x\n1,2\n")
    page.set_input_files("#second-file", tmp_path / "other.csv")
    page.locator("#news", has_text="has no columns").wait_for()
    assert "other.csv has no columns 'b', 'colour'" in opened.text("#news")  # at once, not as a failed job
    assert "Its columns are: 'a', 'x'" in opened.text("#news")
    (tmp_path / "second.csv").write_bytes(csv_bytes)
    page.set_input_files("#second-file", tmp_path / "second.csv")
    page.wait_for_selector("#threshold")
    assert opened.text("h1") == "second.csv: anomalies"
    assert "20\u00a0%" in opened.text(".cards")
    result = page.url
    page.click("nav a[href='#/jobs']")
    page.get_by_role("button", name="Delete first", exact=True).first.click()  # a fit; its model stays
    page.locator("#news", has_text="first is deleted").wait_for()
    opened.close()

    for scheme, colour in (("light", "rgb(245, 246, 248)"), ("dark", "rgb(17, 21, 27)")):
        phone = Page(browser, result, viewport={"width": 360, "height": 740}, color_scheme=scheme)
        phone.page.wait_for_selector("#threshold")
        phone.page.locator("#top tr.row").first.click()
        assert phone.page.evaluate("document.documentElement.scrollWidth") <= 360
        assert phone.page.locator("#top tr.row .strongest .heat").first.is_visible()
        assert phone.page.evaluate("(e => e.scrollWidth - e.clientWidth)(document.querySelector('#top'))") == 0
        assert phone.page.evaluate("getComputedStyle(document.body).backgroundColor") == colour
        phone.page.locator("#threshold").press("End")  # rows that are no alarm look different
        contrast = phone.page.evaluate((Path(__file__).parent / "contrast.js").read_text())
        assert contrast["checked"] > 200 and contrast["found"] == []
        phone.close()


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"a,b\n1,2\n3\n", "line 3: 1 cell where the header has 2"), (b"PK\x03\x04zip", "archive"), (b"", "empty")],
)
def test_a_broken_file_is_explained_and_the_page_goes_on(browser, empty, tmp_path, content, says):
    (tmp_path / "broken.csv").write_bytes(content)
    opened = Page(browser, f"{empty.url}/#/")
    page = opened.page
    page.wait_for_selector("#file", state="attached")
    page.set_input_files("#file", tmp_path / "broken.csv")
    page.wait_for_selector("#news:not([hidden])")
    assert says in opened.text("#news")
    assert str(Path(empty.store)) not in opened.text("#news")
    assert page.locator("#file").count() == 1  # ready for the next file
    assert page.evaluate("document.activeElement.id") == "file"  # for the keyboard as well
    page.get_by_role("button", name="Close").click()
    assert not page.locator("#news").is_visible()
    assert page.evaluate("document.activeElement.id") == "file"
    opened.close()


def test_one_row_is_too_few_for_a_fit_and_the_page_says_so(browser, empty, tmp_path):
    (tmp_path / "one.csv").write_bytes(b"a,b\n1,2\n")
    opened = Page(browser, f"{empty.url}/#/")
    opened.page.wait_for_selector("#file", state="attached")
    opened.page.set_input_files("#file", tmp_path / "one.csv")
    opened.page.get_by_role("link", name="Choose another file").wait_for()
    assert "at least 2 rows are needed" in opened.text(".lead")
    assert opened.page.locator("#fit").count() == 0
    opened.close()


def test_an_upload_can_be_stopped_and_ends_when_one_goes_elsewhere(browser, empty, csv_bytes, tmp_path):
    (tmp_path / "rows.csv").write_bytes(csv_bytes)
    opened = Page(browser, f"{empty.url}/#/")
    page = opened.page
    routes: list[Any] = []
    page.route("**/v1/tables?*", lambda route: routes.append(route))  # it never arrives

    def wait_for_requests(n):
        while len(routes) < n:
            page.wait_for_timeout(10)

    page.wait_for_selector("#file", state="attached")
    page.set_input_files("#file", tmp_path / "rows.csv")
    wait_for_requests(1)
    page.click("#stop-upload")
    page.locator("#file").wait_for(state="attached")
    assert not page.locator("#news").is_visible()
    page.set_input_files("#file", tmp_path / "rows.csv")
    wait_for_requests(2)
    page.wait_for_selector("#stop-upload")
    page.click("nav a[href='#/jobs']")
    page.get_by_role("heading", name="Jobs", exact=True).wait_for()
    assert not page.locator("#news").is_visible() and page.url.endswith("#/jobs")
    assert len(routes) == 2
    opened.close()


def test_a_wrong_token_is_said_and_the_right_one_opens(browser, start):
    guarded = start(token="sesame-sesame-sesame")
    opened = Page(browser, f"{guarded.url}/#/models")
    page = opened.page
    page.wait_for_selector("#token")
    assert not page.locator("#news").is_visible()
    page.fill("#token", "wrong")
    page.keyboard.press("Enter")
    page.wait_for_selector("#news:not([hidden])")
    assert "does not accept this token" in opened.text("#news")
    page.keyboard.type("sesame-sesame-sesame")  # the field has the keyboard again
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Start with a table").wait_for()
    assert page.url.endswith("#/models") and not page.locator("#news").is_visible()
    opened.close()


def test_of_many_columns_some_are_shown_and_others_found(browser, empty, tmp_path):
    names = [f"sensor_{i:03d}" for i in range(200)]
    line = ",".join(names) + "\n"
    (tmp_path / "wide.csv").write_text(
        line + "".join(",".join(str(k + i % 7) for i in range(200)) + "\n" for k in range(9))
    )
    opened = Page(browser, f"{empty.url}/#/", viewport={"width": 360, "height": 740})
    page = opened.page
    page.wait_for_selector("#file", state="attached")
    page.set_input_files("#file", tmp_path / "wide.csv")
    page.wait_for_selector("#fit")
    assert page.locator(".columns tbody tr:visible").count() == 30
    page.fill("#find", "_19")
    assert page.locator(".columns tbody tr:visible").count() == 10
    page.keyboard.press("Enter")  # finds, and does not start a fit
    page.fill("#find", "")
    page.get_by_role("button", name="Show all columns").click()
    assert page.locator(".columns tbody tr:visible").count() == 200
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    opened.close()
