"""Messages of the library in the words of this API: no caller over HTTP has an option of the command line."""

from __future__ import annotations

import re

# an option, with the word that stands for its value, and the member of a request that does the same
_OPTIONS = {
    r"--label(?: COLUMN)?": "'label'",
    r"--normal(?: VALUE)?": "'normal'",
    r"--missing(?: VALUE| TEXT)?": "'missing'",
    r"--false-alarm-rate(?: RATE)?": "'false_alarm_rate'",
    r"--type(?: COLUMN=\S+)?": "'types'",
    r"--drop(?: COLUMN)?": "'drop'",
    r"--set (?=[a-z_]+\.)": "the setting ",
    r"set_false_alarm_rate": "'false_alarm_rate'",
    r"'?ptad recalibrate'?": "a recalibration",
    r"'?ptad update'?": "an update",
}
_ENCODING = re.compile(r"Name its encoding[^;]*?(?:in Python|--encoding \S+)\.")
_OTHERWISE = re.compile(r", or [^.,;]*(?<!\S)--[a-z][^.,;]*")
_STRAY = re.compile(r"(?<!\S)--[a-z][a-z-]*|(?<!\w)ptad [a-z]+ ")


def http_words(message: str) -> str:
    """Return the message without a word of the command line; a remedy that only exists there is left out."""
    text = _ENCODING.sub("Save it as UTF-8 and send it again.", message)
    for option, member in _OPTIONS.items():
        text = re.sub(option, member, text)
    text = _OTHERWISE.sub("", text)
    sentences = re.split(r"(?<=[.;]) ", text)
    kept = [part for part in sentences if not _STRAY.search(part)]
    found = " ".join(kept).rstrip("; ")
    return found if not found or found.endswith((".", "?", "!")) or found == text else f"{found}."
