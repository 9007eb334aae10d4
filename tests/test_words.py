"""The words of the product: what users read says "anomaly", "score", "threshold", not the words that these replaced."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

#: A word that is not used, and what is said instead.
INSTEAD = {
    r"\bstrange(r|st|ly|ness)?\b": "anomalous",
    r"\bjudg(e|es|ed|ing)\b": "score, evaluate",
    r"\b(learn(s|ed|t|ing)?) (from|anew)\b": "train, fit",
    r"\balarm level": "threshold",
    r"\braises? an alarm": "is flagged",
    r"\bpromised rate": "target false-alarm rate",
    r"\bas \w+ as 1 in \d": "a p-value",
    r"\bcolumn kinds?\b|\bkinds? of columns?\b": "column type",
    r"\b(is|are|was|were|columns?) left out\b": "excluded",
    r"\bin short\b": "summary",
    r"\bmade-up\b|\bmade on purpose\b": "synthetic",
    r"\b(row|memory) bank\b": "reference rows",
    r"\btwins?\b": "duplicate rows",
    r"\bvalues? never seen\b": "unseen category",
    r"\bhas changed\b|\bsteady\b": "drift, no drift",
    r"\bmend(s|ed|ing)?\b": "correct",
    r"\bthrow away\b": "delete",
    r"\bwritten to -": "",
    r"\bkindly\b": "",
}
WORDS = re.compile("|".join(f"(?:{word})" for word in INSTEAD), re.IGNORECASE)

DOCUMENTS = sorted(
    [
        ROOT / "README.md",
        ROOT / "CHANGELOG.md",
        ROOT / "CONTRIBUTING.md",
        *(ROOT / "docs").glob("**/*.md"),
        *(ROOT / "examples").glob("*.py"),
    ]
)
CODE = sorted((ROOT / "src/ptad").glob("**/*.py"))
PAGES = [
    p for p in sorted((ROOT / "src/ptad").glob("**/*")) if p.suffix in (".js", ".html") and "vendor" not in p.parts
]


def found_in(text: str) -> list[str]:
    return [match.group(0) for match in WORDS.finditer(text)]


def test_the_words_are_found():
    assert found_in("It is strange. Twins raise an alarm, and the column kind has changed.") == [
        "strange",
        "Twins",
        "raise an alarm",
        "column kind",
        "has changed",
    ]
    assert not found_in("An anomalous row. Duplicate rows are flagged, and the column type shows drift.")


def test_documents():
    assert not {path.name: words for path in DOCUMENTS if (words := found_in(path.read_text(encoding="utf-8")))}


def test_messages_and_docstrings():
    found = {}
    for path in CODE:
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        texts = [n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        found[path.name] = [word for text in texts for word in found_in(text)]
    assert not {name: words for name, words in found.items() if words}


def test_pages():
    code = {path.name: re.sub(r"(?m)^\s*//.*$", "", path.read_text(encoding="utf-8")) for path in PAGES}
    assert not {name: words for name, text in code.items() if (words := found_in(text))}
