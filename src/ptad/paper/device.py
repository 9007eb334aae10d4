"""Where torch computes."""

from __future__ import annotations

import torch

from ptad.errors import SettingError


def resolve_device(name: str) -> torch.device:
    """Return the device of that name; "auto" is a GPU if there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise SettingError(f"The 'device' parameter of PTAD names {name!r}, which cannot be used: {reason}") from error
    return device
