"""The files of the page: whole, and those of the report where it shows the same."""

from __future__ import annotations

import re
from importlib import resources

from ptad.report.scripts import STYLE, asset, scripts


def test_every_import_is_served_and_nothing_is_left_over(service):
    texts: dict[str, str] = {}
    wishes: list[tuple[str, str]] = []
    waiting = ["app.js"]
    while waiting:
        name = waiting.pop()
        if name in texts:
            continue
        answer = service.http.get(f"/page/{name}")
        assert answer.status_code == 200, name
        assert answer.headers["content-type"].startswith("text/javascript")
        texts[name] = answer.text
        for words, source in re.findall(r"^import \{([^}]*)\} from '\./([a-z_/]+\.js)';$", answer.text, re.M):
            wishes += [(word.strip(), source) for word in words.split(",") if word.strip()]
            waiting.append(source)
    for word, source in wishes:
        assert re.search(rf"(?:^|;)export\b.*\b{word}\b", texts[source], re.M), (word, source)
    page = service.http.get("/").text
    assert '"/page/app.js"' in page and service.http.get("/docs").headers["location"] == "/#/api"
    served = {"index.html", *texts, *re.findall(r'href="/page/([^"]+)"', page)}
    own = {file.name for file in resources.files("ptad.service").joinpath("page").iterdir() if file.is_file()}
    assert own <= served <= own | {*scripts(), STYLE}
    assert not own & {*scripts(), STYLE}  # one mechanism: no file of the page stands in front of one of the report


def test_the_report_and_the_page_show_a_table_with_the_same_scripts(service):
    for name in (*scripts(), STYLE):
        assert service.http.get(f"/page/{name}").text == asset(name)
