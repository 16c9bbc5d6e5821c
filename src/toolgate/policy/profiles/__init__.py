"""The policies that come with Toolgate, as the files `toolgate init` writes: `developer`, `readonly`, `locked`."""

from __future__ import annotations

from importlib.resources import files
from typing import Literal, get_args

Profile = Literal["developer", "readonly", "locked"]
PROFILES: tuple[str, ...] = get_args(Profile)
POLICY_FILE = "toolgate.yaml"
COMMANDS_FILE = "toolgate.commands.yaml"
_BEGIN, _END = "#[writes", "#]"
"""Around what a profile that only looks leaves out."""


def render(profile: Profile) -> dict[str, str]:
    """Return the files of a profile, by name."""
    found = {POLICY_FILE: _text(f"{profile}.yaml")}
    if profile != "locked":
        found[COMMANDS_FILE] = commands(profile)
    return found


def commands(profile: Profile) -> str:
    """Return the table of commands of a profile."""
    reading = _text("commands-reading.yaml").splitlines(keepends=True)
    if profile == "developer":
        kept = [line for line in reading if line.strip() not in (_BEGIN, _END)]
        return "".join(kept) + _text("commands-development.yaml")
    kept, is_left_out = [], False
    for line in reading:
        if line.strip() in (_BEGIN, _END):
            is_left_out = line.strip() == _BEGIN
        elif not is_left_out:
            kept.append(line)
    return "".join(kept)


def _text(name: str) -> str:
    return (files(__name__) / name).read_text(encoding="utf-8")
