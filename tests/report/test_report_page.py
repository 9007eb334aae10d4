"""The file itself: escaping, the policy in its head, and that it is one whole."""

from __future__ import annotations

import base64
import hashlib
import json
import re

import pytest

from ptad.report import write_report
from ptad.report.writing import SCRIPTS, asset, make_page

HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    '=HYPERLINK("http://example.org","x")',
    "<!-- & @@script@@ \u2028 \u2029",
]


@pytest.fixture
def page(model, table, tmp_path) -> str:
    table["city"] = table["city"].astype(object)
    table.loc[[3, 5, 7, 9], "city"] = HOSTILE
    write_report(model, table, tmp_path / "r.html")
    return (tmp_path / "r.html").read_text("utf-8")


def test_values_cannot_leave_the_data_element(page):
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert found
    assert not re.search("[<>&\u2028\u2029]", found.group(1))
    quoted = {cell["observed"] for row in json.loads(found.group(1))["top"]["rows"] for cell in row["cells"]}
    assert set(HOSTILE) <= quoted
    assert "<img" not in page
    assert len(re.findall("<script", page)) == 2


def test_policy_allows_exactly_the_embedded_script_and_style(page):
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy
    assert policy.group(1).startswith("default-src 'none'; ")
    assert "unsafe" not in policy.group(1)
    for tag, text in (("script", r"<script>(.*?)</script>"), ("style", r"<style>(.*?)</style>")):
        found = re.search(text, page, re.S)
        assert found
        digest = base64.b64encode(hashlib.sha256(found.group(1).encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy.group(1)


def test_nothing_points_outside(page):
    without_data = re.sub(r'<script type="application/json".*?</script>', "", page, flags=re.S)
    addresses = set(re.findall(r"https?://[^\s'\"]+", without_data))
    assert addresses == {"http://www.w3.org/2000/svg"}  # a name, not an address
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|@import|url\(http", page)


def test_title_is_escaped():
    assert "<title>&lt;b&gt; &amp; &quot;x&quot;</title>" in make_page({"title": '<b> & "x"'})


def test_modules_can_share_one_scope_and_come_in_order():
    """The report puts the modules into one script: no name twice, and nothing needed before it is there."""
    seen: set[str] = set()
    for name in (*SCRIPTS, "page.js"):
        text = asset(name)
        needed = {
            word.strip()
            for found in re.findall(r"^import \{([^}]*)\} from '\./[a-z_]+\.js';$", text, re.M)
            for word in found.split(",")
        }
        assert needed <= seen, name
        own = re.findall(r"^(?:export )?(?:const|let|function|class) (\w+)", text, re.M)
        assert len(own) == len(set(own)) and not seen & set(own), name
        seen |= set(own)
    script = re.search(r"<script>(.*?)</script>", make_page({"title": ""}), re.S)
    assert script
    assert not re.search(r"^(import|export)\b", script.group(1), re.M)
