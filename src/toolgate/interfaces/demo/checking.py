"""Holds the demo to its story: how each step must end, and what must be true when all of them have."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from toolgate.interfaces.demo import story


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A step that did not end as it should, and why."""

    step: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How one call of the agent ended."""

    step: str
    """Its tool and what it was about."""
    status: str
    outcome: str


@dataclass(kw_only=True)
class Record:
    """What happened in one performance."""

    calls: list[Ended] = field(default_factory=list)
    answers: dict[str, str] = field(default_factory=dict)
    """What was decided, by step."""
    undone: dict[str, str] = field(default_factory=dict)
    """What became of each step when its run was undone."""
    problems: list[Failure] = field(default_factory=list)
    """What went wrong beside the calls."""
    verified: int = 0
    """How many events of the record were verified."""


def broken(record: Record) -> list[Failure]:
    """What failed, whoever decided: no call may fail, and nothing but the protected file may be denied."""
    bad = [
        Failure(step=one.step, why=f"{one.status}: {one.outcome}")
        for one in record.calls
        if one.status == "failed" or (one.status == "denied" and one.step != story.PROTECTED)
    ]
    return [*bad, *record.problems]


def unkept(
    record: Record,
    *,
    sandbox: bool,
    page: str,
    letters: Collection[str],
    refunds: Collection[str],
    files: Mapping[str, str],
) -> list[Failure]:
    """What is not as the demo promises where it decides by itself: each step's end, each answer, each undo."""
    found = broken(record)
    named = {one.step for one in found}
    missed = [
        *_unkept(record, sandbox, page, letters, files),
        *_differing("refunds", "were", list(refunds), [story.ORDER]),
    ]
    return found + [one for one in missed if one.step not in named]


def _unkept(
    record: Record, sandbox: bool, page: str, letters: Collection[str], files: Mapping[str, str]
) -> Iterator[Failure]:
    ended: dict[str, list[str]] = {}
    for one in record.calls:
        ended.setdefault(one.step, []).append(one.status)
    for step, statuses in story.ends(page, sandbox=sandbox).items():
        yield from _differing(step, "ended", ended.get(step), statuses)
    for step, word in story.ANSWERS.items():
        yield from _differing(step, "was", record.answers.get(step), word)
    for step, word in story.UNDONE.items():
        yield from _differing(f"undo of {step}", "was", record.undone.get(step), word)
    tests = [one.outcome.partition(":")[0] for one in record.calls if one.step == story.TESTS]
    if sandbox:
        yield from _differing("the tests, before and after the repair", "gave", tests, ["exit code 1", "exit code 0"])
    yield from _differing("letters", "went to", list(letters), story.PILOT)
    if dict(files) != story.FILES:
        yield Failure(step="undo", why="it did not bring every file back")
    if not record.verified:
        yield Failure(step="audit", why="no event was verified")


def _differing(step: str, verb: str, found: object, wanted: object) -> Iterator[Failure]:
    if found != wanted:
        yield Failure(step=step, why=f"{verb} {_words(found)}, not {_words(wanted)}")


def _words(value: object) -> str:
    return ", ".join(map(str, value)) or "none" if isinstance(value, list) else str(value or "never")
