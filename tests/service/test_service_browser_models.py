"""The page in a real Chromium: markers, new versions, comparisons, scores over time, reports, the page of the API."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from service_page import Page
from service_tables import csv_of, make_rows

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def dated(n: int, seed: int) -> bytes:
    """Rows with two date columns and a number in which a question mark stands for a missing value."""
    days = pa.array([f"2024-{1 + 6 * i // n:02d}-{1 + i % 28:02d}" for i in range(n)])
    marked = pa.array(["?" if i % 10 == 3 else str(i % 7) for i in range(n)])
    later = pa.array([f"2025-{1 + 6 * i // n:02d}-{1 + i % 28:02d}" for i in range(n)])
    rows = make_rows(n, seed).append_column("day", days).append_column("paid", later).append_column("marked", marked)
    return csv_of(rows)


@pytest.fixture(scope="module")
def walk(start) -> Any:
    """A service without any model, for one walk through the page."""
    return start()


def wait_for_text(page: Any, selector: str, text: str) -> None:
    page.locator(selector, has_text=text).first.wait_for()


def test_a_model_gets_versions_that_are_compared_and_followed_over_time(browser, walk, tmp_path):
    (tmp_path / "rows.csv").write_bytes(dated(240, 0))
    (tmp_path / "later.csv").write_bytes(dated(480, 5))
    opened = Page(browser, walk.url, viewport={"width": 1280, "height": 900})
    page = opened.page
    page.wait_for_selector("#example")
    page.set_input_files("#file", tmp_path / "rows.csv")
    page.wait_for_selector("#fit")
    # what must be decided, and the start, are in sight before the list of columns
    assert page.locator("#fit").bounding_box()["y"] < page.locator("#columns").bounding_box()["y"]
    assert page.locator("#fit").bounding_box()["y"] < 800

    assert page.get_by_label("Type of marked").input_value() == "categorical"
    page.get_by_label("Use n", exact=True).uncheck()
    page.fill("#missing", "?")
    page.locator("#missing").blur()
    wait_for_text(page, ".columns tr:has-text('marked')", "10\u00a0%")
    assert page.get_by_label("Type of marked").input_value() == "numeric"
    assert not page.get_by_label("Use n", exact=True).is_checked()  # what was chosen stays
    page.select_option("#label", "state")
    for column in ("day", "paid"):
        page.get_by_label(f"Use {column}").uncheck()
    page.click("#fit")
    page.wait_for_selector("#threshold")
    first = page.url
    assert opened.text("#held-out").startswith("Held-out scores of the training rows")
    assert "of the training table" in opened.text("#threshold-text")
    assert "Missing values: marked (24 rows)" in opened.text("#cells")

    assert "by month of day" in opened.text("#over-time")
    page.select_option("#date-column", "paid")
    wait_for_text(page, "#over-time", "by month of paid")
    assert page.locator("#timeline canvas").count() == 2
    with page.expect_download() as download:
        page.get_by_role("button", name="Download the report").click()
    download.value.save_as(tmp_path / "report.html")
    assert download.value.suggested_filename == "rows-report.html"
    report = Page(browser, (tmp_path / "report.html").as_uri())
    report.page.wait_for_selector("#threshold")
    report.close()

    page.click("nav a[href='#/models']")
    page.get_by_role("heading", name="Models", exact=True).wait_for()  # the view before has such links too
    page.get_by_role("link", name="rows", exact=True).click()
    page.wait_for_selector("#new-rows", state="attached")
    page.set_input_files("#new-rows", tmp_path / "later.csv")
    page.wait_for_selector("#renew")
    page.select_option("#label", "state")
    page.click("#renew")
    page.get_by_role("link", name="Compare with the previous version").click()
    page.wait_for_selector("#details")
    assert "rows, version 2" in opened.text("#details") and "update" in opened.text("#details")
    assert "All settings are the same" in opened.text("main")
    page.get_by_role("link", name="rows, version 2").click()
    page.wait_for_selector("#second-file", state="attached")
    page.set_input_files("#second-file", tmp_path / "rows.csv")
    page.wait_for_selector("#threshold")
    page.get_by_role("link", name="rows, version 2").click()
    page.wait_for_selector("#uploads")
    assert page.locator("#uploads tbody tr").count() == 2
    assert "held-out scores of the training rows" in opened.text("#uploads")

    page.click("nav a[href='#/models']")
    page.get_by_role("heading", name="Models", exact=True).wait_for()  # the view before has such links too
    page.get_by_role("link", name="rows", exact=True).click()
    page.wait_for_selector("#new-rows", state="attached")
    page.set_input_files("#new-rows", tmp_path / "later.csv")
    page.wait_for_selector("#renew")
    page.get_by_label("Recalibrate").check()
    page.click("#renew")
    page.get_by_role("link", name="Look at the model").click()
    page.get_by_role("heading", name="rows, version 3").wait_for()

    page.goto(first)
    page.wait_for_selector("#other-scoring")
    page.get_by_role("link", name="Compare", exact=True).click()
    page.wait_for_selector("#quantiles")
    assert "changed" in opened.text("#moved") and page.locator("#quantiles tbody tr").count() == 9
    opened.close()


def test_two_scorings_of_one_table_show_the_rows_that_changed(browser, walk, tmp_path):
    table = walk.upload(csv_of(make_rows(200, 0)), "same.csv").json()["id"]
    ids = []
    for drop in (["state"], ["state", "a"]):
        wanted = {"table": table, "name": f"without {len(drop)}", "drop": drop, "score": True}
        ids.append(walk.wait(walk.http.post("/v1/fits", json=wanted).json()["id"])["id"])
    comparison = walk.http.get(f"/v1/jobs/{ids[0]}/comparison", params={"other": ids[1]}).json()
    for width in (1280, 390):
        opened = Page(
            browser, f"{walk.url}/#/results/{ids[0]}/compare/{ids[1]}", viewport={"width": width, "height": 900}
        )
        opened.page.wait_for_selector("#quantiles")
        n = len(comparison["changed"])
        assert (
            n > 0
            and opened.text("#moved") == f"{n} row{'' if n == 1 else 's'} changed {'its' if n == 1 else 'their'} flag."
        )
        assert opened.page.locator("#changed tbody tr").count() == min(n, 20)
        assert opened.page.locator(".plot canvas").count() == 1
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
        opened.close()


def test_a_fit_goes_on_without_its_page_and_is_scored(browser, walk, tmp_path):
    (tmp_path / "left.csv").write_bytes(csv_of(make_rows(200, 2)))
    opened = Page(browser, f"{walk.url}/#/")
    page = opened.page
    page.wait_for_selector("#file", state="attached")
    page.set_input_files("#file", tmp_path / "left.csv")
    page.wait_for_selector("#fit")
    held = walk.stops.add("*/jobs/*/model/bundle", how="hold")
    page.click("#fit")
    page.wait_for_selector("#cancel")
    job = page.url.split("/")[-1]
    held.wait(walk.log.read_text)
    opened.close()
    held.release()
    done = walk.wait(job)
    assert done["state"] == "done" and done["scores"]["rows"] == 200


def test_signs_and_dates_are_chosen_and_a_part_that_fails_hides_no_other(browser, walk, tmp_path):
    lines = [f"{1 + i % 28:02d}/{1 + i % 12:02d}/2024;{i % 9},5;{i % 7}" for i in range(120)]
    (tmp_path / "signs.csv").write_text("\n".join(["day;price;n", *lines]))
    opened = Page(browser, walk.url)
    page = opened.page
    page.set_input_files("#file", tmp_path / "signs.csv")
    page.wait_for_selector("#fit")
    page.select_option("#decimal", ",")
    page.get_by_label("Date format of day").fill("%d/%m/%Y")
    page.click("#fit")
    page.wait_for_selector("#threshold")
    job = walk.http.get(f"/v1/jobs/{page.url.split('/')[-1]}").json()
    columns = {c["name"]: c for c in walk.http.get(f"/v1/models/{job['model']}").json()["columns"]}
    assert columns["day"]["formats"] == ["%d/%m/%Y"] and columns["price"]["decimal"] == ","
    refusal = {"status": 409, "content_type": "application/problem+json", "body": '{"detail": "It is not there."}'}
    page.route("**/v1/jobs/*/timeline", lambda route: route.fulfill(**refusal))
    page.reload()
    wait_for_text(page, "#news", "Not shown: scores over time. It is not there.")
    assert page.locator("#threshold").count() == 1
    opened.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_api_is_described_without_the_network(browser, walk, scheme):
    opened = Page(browser, f"{walk.url}/docs", viewport={"width": 390, "height": 800}, color_scheme=scheme)
    page = opened.page
    page.wait_for_selector(".operation")
    paths = walk.http.get("/openapi.json").json()["paths"]
    assert page.locator(".operation").count() == sum(len(methods) for methods in paths.values())
    page.locator(".operation", has_text="/v1/updates").locator("summary").click()
    shown = page.locator(".operation", has_text="/v1/updates").inner_text()
    assert "false_alarm_rate" in shown and "required" in shown
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    opened.close()
