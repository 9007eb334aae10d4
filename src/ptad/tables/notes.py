"""What the owner of a table should know about the way in which it is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ptad.layout import Listed, Record, Text, Truth
from ptad.messages import Message, Option


@dataclass(frozen=True)
class Note:
    """How a part of a table is read, and what to fit with if that is wrong.

    Attributes
    ----------
    text : str
        What was found: a sentence without its full stop.
    options : tuple of Option
        What to fit with instead.
    doubtful : bool
        Whether it is a guess, or may be a mistake.
    """

    text: str
    options: tuple[Option, ...]
    doubtful: bool = False

    layout = Record({"text": Text(), "options": Listed(Listed(Text(), 1, 3), low=1), "doubtful": Truth()})

    @property
    def message(self) -> Message:
        """The note for any reader."""
        names = " and ".join(["{}"] * len(self.options))
        return Message(f"{self.text}.", f"If that is wrong, fit with {names}.", self.options)

    def to_json(self) -> dict[str, Any]:
        """Plain types; an option is its name, followed by its value or by a column and its type."""
        options = [
            [o.name, *(o.value if isinstance(o.value, tuple) else filter(None, [o.value]))] for o in self.options
        ]
        return {"text": self.text, "options": options, "doubtful": self.doubtful}

    @classmethod
    def from_json(cls, state: dict[str, Any]) -> Note:
        """Read back what :meth:`to_json` wrote."""
        options = ((name, rest) for name, *rest in state["options"])
        named = tuple(
            Option(n, (rest[0], rest[1]) if len(rest) == 2 else rest[0] if rest else None) for n, rest in options
        )
        return cls(state["text"], named, state["doubtful"])

    def __str__(self) -> str:
        return str(self.message)
