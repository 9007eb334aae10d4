"""The file itself: escaping, the policy in its head, and that it is one whole."""

from __future__ import annotations

import base64
import hashlib
import json
import re

import pytest

from ptad.report import write_report
from ptad.report.scripts import asset, script, scripts
from ptad.report.writing import make_page

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
    # names, not addresses, and a comment of a library
    assert addresses <= {"http://www.w3.org/2000/svg", "https://github.com/leeoniya/uPlot"}
    assert not re.search(r"document\.write|eval\(|@import|url\(http", page)
    for name in ("page.js", *scripts()):
        if not name.startswith("vendor/"):
            assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML", asset(name)), name


def test_title_is_escaped():
    assert "<title>&lt;b&gt; &amp; &quot;x&quot;</title>" in make_page({"title": '<b> & "x"'})


def test_every_module_comes_once_and_after_what_it_imports():
    text = script("page.js")
    assert not re.search(r"^(import|export)\b|\bexport ?\{", text, re.M)
    made = [(found.start(), found[1]) for found in re.finditer(r"^modules\['([^']+)'\] = ", text, re.M)]
    names = [name for _, name in made]
    assert len(names) == len(set(names)) and names[-1] == "page.js" and set(names[:-1]) <= set(scripts())
    places = {name: place for place, name in made}
    uses = [
        (found.start(), found[1], found[2])
        for found in re.finditer(r"^const \{([^}]*)\} = modules\['([^']+)'\];", text, re.M)
    ]
    assert uses
    for place, words, source in uses:
        assert places[source] < place
        returned = re.compile(r"return \{([^}]*)\};\n\}\)\(\);").search(text, places[source])
        assert returned
        known = {entry.split(":")[0].strip() for entry in returned[1].split(",")}
        assert {word.split(":")[0].strip() for word in words.split(",") if word.strip()} <= known, source
