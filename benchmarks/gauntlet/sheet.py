"""The scenarios, and the sheet a contender fills in. Standard library only: it runs in every peer's environment.

A cell says whether the promise holds, breaks, is absent (the library has no such feature) or was not tried, and what
happened.
A scenario that raises something unexpected is recorded as such, never as a pass.
"""

import importlib.metadata
import json
import sys
import traceback
from collections.abc import Callable

SCENARIOS = {
    "reject_while_relaxed": "A person rejects a call while the policy is relaxed: it must not run.",
    "resume_twice": "One approval is resumed twice, and twice at once: the tool runs once.",
    "changed_arguments": "The stored arguments change between review and run: what was reviewed runs, or nothing.",
    "expired": "A yes that comes after the approval expired is refused.",
    "hidden_positional": "Arguments given by position are shown to the approver.",
    "quorum": "Two of three must approve: one vote, or two of one person, run nothing; a denial ends it.",
    "undo": "The documented undo takes the effect back.",
    "changed_definition": "The tool changes while the approver's page is open: the old yes does not run the new tool.",
    "double_click": "The first decision is final: a second one, the same or another, changes nothing and runs nothing.",
    "crash": "The process dies after the effect and before its record: resuming the approval does not run it again.",
    "own_approval": "Whoever asked cannot approve through a second login.",
}

HOLDS, BREAKS, ABSENT, UNTRIED = "holds", "breaks", "absent", "not tried"
Cell = tuple[str, str]
Scenario = Callable[[], Cell]


def holds(what: str) -> Cell:
    return HOLDS, what


def breaks(what: str) -> Cell:
    return BREAKS, what


def absent(what: str) -> Cell:
    return ABSENT, what


def untried(what: str) -> Cell:
    return UNTRIED, what


def judge(is_kept: bool, kept: str, broken: str) -> Cell:
    """Return the cell of a promise that was put to the test."""
    return holds(kept) if is_kept else breaks(broken)


def fill_in(distribution: str, cells: dict[str, Scenario | Cell]) -> None:
    """Run every scenario and print the sheet as one line of JSON."""
    told: dict[str, dict[str, str]] = {}
    for name in SCENARIOS:
        given = cells[name]
        if not isinstance(given, tuple):
            try:
                given = given()
            except Exception as error:  # noqa: BLE001  # whatever a contender raises is told in its cell
                traceback.print_exc(file=sys.stderr)
                given = ("error", f"the script failed with {type(error).__name__}: {str(error)[:160]}")
        told[name] = {"outcome": given[0], "what": given[1]}
    print(json.dumps({"version": importlib.metadata.version(distribution), "cells": told}))
