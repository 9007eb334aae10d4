"""Messages of the library as HTTP says them, and numbers as the page shows them."""

from __future__ import annotations

import pytest

from ptad.service.sandbox import _text
from ptad.service.words import http_words


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("There is no column 'a--b'. Correct it.", "There is no column 'a--b'. Correct it."),
        (
            "Its columns are: 'a'. Name one of them with --label.",
            "Its columns are: 'a'. Name one of them with 'label'.",
        ),
        (
            "Say which is normal with --normal VALUE, or which is not with --anomaly VALUE.",
            "Say which is normal with 'normal'.",
        ),
        ("A sample was taken; raise --max-rows to use more", "A sample was taken."),
        (
            "No threshold. Fit with --set calibration.method=auto.",
            "No threshold. Fit with the setting calibration.method=auto.",
        ),
        (
            "x is not utf-8 text (byte 3). Name its encoding, for example --encoding latin-1 on the command line or "
            "encoding='latin-1' in Python.",
            "x is not utf-8 text (byte 3). Save it as UTF-8 and send it again.",
        ),
    ],
)
def test_options_become_members_of_a_request_or_go(message, said):
    assert http_words(message) == said


@pytest.mark.parametrize(
    ("value", "text"),
    [(50930.0, "50930"), (1234567.5, "1234570"), (0.00001234, "0.00001234"), (0.1257302, "0.12573"), (-3e20, "-3e+20")],
)
def test_examples_of_a_column_are_written_for_people(value, text):
    assert _text(value) == text
