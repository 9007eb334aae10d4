"""The group of all commands: turns every outcome of a command into an exit code and, after an error, one line.

0 success, 1 unexpected error, 2 user error, 130 interrupted.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import typer
from typer.core import TyperGroup

from ptad.cli.console import print_error, tear_down_logging
from ptad.errors import Message, PtadError, UserError
from ptad.files import is_full, write_error


class Commands(TyperGroup):
    """Runs a command and turns what it raises into a message and an exit code."""

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, *, standalone_mode: bool = True, **more: Any
    ) -> Any:
        """Run the command line; in ``standalone_mode`` exit the process with its exit code."""
        if not standalone_mode:
            return super().main(args, standalone_mode=False, **more)
        as_json = "--json" in (sys.argv[1:] if args is None else args)
        try:
            result = super().main(args, standalone_mode=False, **more)
            code = result if isinstance(result, int) else 0
        except (typer.Abort, KeyboardInterrupt):
            code = 130
        except Exception as error:
            code = _report(error, as_json)
        finally:
            tear_down_logging()
        if code == 130:
            print_error("Interrupted", "interrupted", as_json=as_json)
        sys.exit(code)


def _report(error: Exception, as_json: bool) -> int:
    """Print an error and return the exit code."""
    kind = type(error).__name__
    if kind == "NoArgsIsHelpError":  # it carries the help, not a message
        error.show()  # type: ignore[attr-defined]
        return 2
    if isinstance(error, BrokenPipeError):
        # the reader of our output has exited; without this, Python would fail again when it flushes at exit
        _close_output()
        return 1
    message = _user_message(error)
    if message is not None:
        print_error(kind, message, as_json=as_json)
        return 2
    if isinstance(error, PtadError):
        print_error(kind, error.message, as_json=as_json)
        return 1
    trace = "".join(traceback.format_exception(error))
    if as_json:
        print_error(kind, str(error), as_json=True, traceback=trace)
    else:
        typer.echo(trace, err=True)
        print_error(kind, f"unexpected {kind}: {error}. This is a bug: please report it.", as_json=False)
    return 1


def _user_message(error: Exception) -> str | Message | None:
    """Return the message of an error that the user can correct; None for any other."""
    if isinstance(error, OSError) and is_full(error):
        _close_output()
        # without a name it is standard output or a temporary file
        where = "Standard output or a temporary file" if error.filename is None else str(error.filename)
        return write_error(where, error, UserError).message
    if isinstance(error, UserError):
        return error.message
    if isinstance(error, MemoryError):
        return "The memory is not enough for this table or model. Give fewer rows or shorter texts, or more memory."
    if getattr(error, "option_name", None) == "--kind":
        return "There is no option --kind. The type of a column is set with --type, such as --type zip=categorical."
    if hasattr(error, "format_message"):  # of the parser: a wrong or missing option
        text = error.format_message().rstrip(".")
        hint = " Several files are one TABLE: a folder, or a glob in quotes." if "extra argument" in text else ""
        command = getattr(getattr(error, "ctx", None), "command_path", "ptad")
        return f"{text}{'' if text.endswith('?') else '.'}{hint} See '{command} --help'."
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}. Check the path."
    return None


def _close_output() -> None:
    """Redirect standard output to nowhere: Python flushes it at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
