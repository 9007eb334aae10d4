"""Messages of the library as HTTP says them."""

from __future__ import annotations

import pytest

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
