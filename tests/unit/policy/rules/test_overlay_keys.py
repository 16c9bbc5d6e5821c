"""`commands: {overlay, run_later}` and `sandbox: {disk_mb}`: what several layers say together; what does not load."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.policy.asking import policy

from toolgate.errors import PolicyError
from toolgate.policy.examples import stand_in

COMMANDS = "version: 1\ntools: {run: {commands: {%s}}}\n"


def run_later(text: str, tmp_path: Path) -> str | None:
    made = policy(text, workspace=tmp_path)
    made.stance(stand_in("run"))
    return made.edges().overlay("run")


@pytest.mark.parametrize(
    ("keys", "wanted"),
    [
        ("unknown: ask", None),
        ("overlay: false", None),
        ("overlay: true", "report"),
        ("run_later: report", None),
        ("run_later: ask", "ask"),
        ("overlay: true, run_later: deny", "deny"),
    ],
)
def test_holding_changes_back_implies_an_overlay(tmp_path: Path, keys: str, wanted: str | None) -> None:
    assert run_later(COMMANDS % keys, tmp_path) == wanted


def test_the_strictest_word_counts(tmp_path: Path) -> None:
    both = "version: 1\ntools: {run: {commands: {overlay: true}}, 'r*': {commands: {run_later: deny}}}\n"
    assert run_later(both, tmp_path) == "deny"


def test_changes_cannot_be_held_back_without_an_overlay(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="write `overlay: true` beside it"):
        policy(COMMANDS % "overlay: false, run_later: ask", workspace=tmp_path)


def test_the_smaller_quota_counts(tmp_path: Path) -> None:
    both = "version: 1\ntools: {run: {sandbox: {disk_mb: 9}}, 'r*': {sandbox: {disk_mb: 5}}}\n"
    stance = policy(both, workspace=tmp_path).stance(stand_in("run"))
    assert stance.sandbox is not None
    assert stance.sandbox.disk_mb == 5
