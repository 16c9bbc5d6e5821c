"""The targets of `make bench`: what is judged, what is asked for by name, and that rows of other runs stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from benchmarks import page, report
from benchmarks.contenders import CONTENDERS, EARLIER
from benchmarks.environments import ENVIRONMENTS
from benchmarks.suite import parse
from benchmarks.targets import NOTHING, SECTIONS, Verdict, judge

BEGIN, END = page.TARGETS


def row(name: str, microseconds: float) -> dict[str, Any]:
    times = {"median": microseconds, "min": microseconds, "max": microseconds, "rounds": [microseconds]}
    group = next(one.group for one in CONTENDERS if one.name == name)
    return {
        "name": name,
        "group": group,
        "path": "",
        "version": "",
        "is_ours": name in ("toolgate_300", "toolgate_approval"),
        "is_information": False,
        "call_us": times,
        "raw_us": times,
        "parallel_per_s": times,
    }


def found(**microseconds: float) -> dict[str, Any]:
    return {**NOTHING, "calls": [row(name, taken) for name, taken in microseconds.items()]}


def verdicts_of(results: dict[str, Any]) -> dict[str, bool]:
    return {one.title: one.is_reached for one in judge(results) if one.is_reached is not None}


PEERS = {"stageflow_300": 100.0, "pydantic_ai_300": 100.0, "toolgate_2e57217_300": 100.0}
WITH_FORM = "call with a 300-byte form / "


@pytest.mark.parametrize(
    ("ours", "reached"), [(70.0, [True, True, True]), (110.0, [True, True, False]), (151.0, [False] * 3)]
)
def test_a_call_with_a_form_is_judged_beside_each_peer(ours: float, reached: list[bool]) -> None:
    verdicts = verdicts_of(found(toolgate_300=ours, **PEERS))
    assert verdicts == dict(
        zip(
            (
                f"{WITH_FORM}stageflow with events",
                f"{WITH_FORM}pydantic-ai's tool manager, ungoverned",
                f"{WITH_FORM}the same at commit 2e57217",
            ),
            reached,
            strict=True,
        )
    )


@pytest.mark.parametrize(("ours", "reached"), [(100.0, True), (101.0, False)])
def test_an_approval_workflow_may_take_a_third_of_the_earlier_commits(ours: float, reached: bool) -> None:
    verdicts = verdicts_of(found(toolgate_approval=ours, toolgate_2e57217_approval=300.0))
    assert verdicts == {"approval workflow in memory / the same at commit 2e57217": reached}


@pytest.mark.parametrize(("megabytes", "reached"), [(60.0, True), (60.1, False)])
def test_parked_calls_are_judged_by_the_memory_they_take(megabytes: float, reached: bool) -> None:
    numbers = dict.fromkeys(("median", "min", "max"), megabytes)
    many = {"parked": 10_000, "growth_mb": numbers}
    assert verdicts_of({**NOTHING, "parking": {"many": many}}) == {"memory of 10,000 parked calls": reached}


def test_a_targets_title_is_the_same_measured_or_not() -> None:
    assert [one.title for one in judge(found(toolgate_300=1.0, **PEERS))] == [one.title for one in judge(NOTHING)]
    assert len({one.title for one in judge(NOTHING)}) == len(judge(NOTHING))


def test_one_name_is_one_contender_a_table_or_a_section() -> None:
    assert parse(["--only", "toolgate"]).wanted == {"toolgate"}
    assert parse(["--only", "form_300", "--only", "diff"]).wanted == {"toolgate_300", *PEERS, "diff"}
    assert parse(["--only", "approval"]).wanted == {"toolgate_approval", "toolgate_2e57217_approval"}
    assert parse([]).wanted == {*(one.name for one in CONTENDERS), *SECTIONS}


def test_a_quick_run_never_writes_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert parse([]).write_docs is True
    assert parse(["--only", "toolgate"]).write_docs is True
    assert parse(["--no-write-docs"]).write_docs is False
    assert parse(["--quick"]).write_docs is False
    with pytest.raises(SystemExit):
        parse(["--quick", "--write-docs"])
    assert "quick run are rough" in capsys.readouterr().err


def test_every_contender_has_an_environment_and_the_earlier_commit_its_own() -> None:
    assert {one.environment for one in CONTENDERS} - {None} <= ENVIRONMENTS.keys()
    assert ENVIRONMENTS[EARLIER].commit == "2e57217"


def test_a_run_replaces_the_rows_it_measured_and_keeps_the_others(tmp_path: Path) -> None:
    path = tmp_path / "benchmarks.md"
    path.write_text(f"# Before\n{BEGIN}\n{END}\nafter\n", encoding="utf-8")
    first, second = Verdict(title="first", limit=1.0), Verdict(title="second", limit=1 / 3)
    page.write_targets(path, [first, second], measured="never")
    assert page.target_rows(path.read_text(encoding="utf-8")) == [
        ["first", "<= 1x", "", "", "not measured yet", ""],
        ["second", "<= 0.333x", "", "", "not measured yet", ""],
    ]
    slow = Verdict(title="second", limit=1 / 3, measured=0.5, of_minima=0.25)
    page.write_targets(path, [first, slow], measured="Monday, 2 cores")
    quick = Verdict(title="first", limit=1.0, measured=0.75)
    page.write_targets(path, [quick, second], measured="Tuesday, 4 cores")
    text = path.read_text(encoding="utf-8")
    assert page.target_rows(text) == [
        ["first", "<= 1x", "0.75x", "", "reached", "Tuesday, 4 cores"],
        ["second", "<= 0.333x", "0.50x", "0.25x", "MISSED", "Monday, 2 cores"],
    ]
    assert text.startswith(f"# Before\n{BEGIN}\n| target |")
    assert text.endswith(f"{END}\nafter\n")


def test_a_figure_measured_against_another_limit_does_not_stay(tmp_path: Path) -> None:
    path = tmp_path / "benchmarks.md"
    path.write_text(f"{BEGIN}\n{END}\n", encoding="utf-8")
    page.write_targets(path, [Verdict(title="one", limit=2.0, measured=1.5)], measured="Monday")
    page.write_targets(path, [Verdict(title="one", limit=1.0)], measured="Tuesday")
    rows = page.target_rows(path.read_text(encoding="utf-8"))
    assert rows == [["one", "<= 1x", "", "", "not measured yet", ""]]


def test_the_terminal_says_where_and_what_is_missed() -> None:
    results = found(toolgate_300=151.0, stageflow_300=100.0) | {
        "measured_on": "2026-01-02",
        "python": "3.11.7",
        "machine": "Linux, 2 cores",
    }
    said = report.terminal(results, judge(results))
    assert "2026-01-02, Linux, 2 cores, Python 3.11.7" in said
    assert [line.split()[-1] for line in said.splitlines() if line.startswith(f"{WITH_FORM}stage")] == ["MISSED"]
    assert all(one.title in said for one in judge(NOTHING))


@pytest.mark.parametrize(
    ("emoji", "reached"), [(30.0, [True, True, True]), (24.0, [True, True, False]), (19.0, [False, True, False])]
)
def test_the_slowest_kind_of_text_decides_how_fast_texts_are(emoji: float, reached: list[bool]) -> None:
    speeds = {"plain": 100.0, "emoji": emoji, "userinfo": 500.0, "secrets": 11.0}
    cards = {kind: {"median": speed, "max": speed} for kind, speed in speeds.items()}
    assert list(verdicts_of({**NOTHING, "cards": cards}).values()) == reached
    masking = {**cards, "call_us": {"median": 6.1, "max": 7.0}}
    assert list(verdicts_of({**NOTHING, "masking": masking}).values()) == [*reached, False]
