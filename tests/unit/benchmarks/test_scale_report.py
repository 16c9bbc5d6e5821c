"""The load report: what it says of its numbers, and that it writes its own section of the page and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.scale.costs import Cost
from benchmarks.scale.events import PROJECT, _rows
from benchmarks.scale.load import Load
from benchmarks.scale.pending import Waiting
from benchmarks.scale.report import BEGIN, END, Report
from benchmarks.scale.studies import Column, Point, Study, bend
from benchmarks.scale.targets import FEW, MANY, Found, judge

from toolgate.kernel.event import Event, genesis, verify


def study(*points: Point) -> Study:
    return Study(
        name="trial",
        title="Trial",
        x_label="tasks",
        about="What was tried.",
        columns={"per_s": Column(heading="per second", is_rate=True), "ms": Column(heading="p50 ms", digits=2)},
        drawn=("per_s", "ms"),
        points=list(points),
    )


def three_points() -> Study:
    return study(
        Point(series="fast", x=1, values={"per_s": 1000.0, "ms": 1.0}),
        Point(series="fast", x=10, values={"per_s": 5000.0, "ms": 2.0}),
        Point(series="fast", x=100, values={"per_s": 5100.0, "ms": 20.0}),
        Point(series="fast", x=1000, values={"ms": 200.0}, how="estimated"),
    )


def all_found(*, pending_ms: float = 1.2) -> Found:
    return Found(
        changes={"ours_per_s": 900.0, "quiet_per_s": 1000.0, "raw_per_s": 200.0, "times_raw": 4.5, "notify_share": 0.1},
        ours_per_s=[30.0, 40.0, 50.0],
        by_hand_per_s=[100.0, 100.0, 200.0],
        wake={"called_ms": 9.0, "committed_ms": 8.0, "commit_ms": 1.0, "notify_ms": 0.5},
        pending={FEW: Waiting(1.0, 2.0, 1.0, 1.0), MANY: Waiting(pending_ms, 2.0, 1.0, 1.0)},
        costs={where: Cost(800.0, 0.5, 0.1, {"server": 1.0}, []) for where in ("inline", "at a worker")},
    )


def test_a_rate_bends_where_it_gains_little_and_a_time_where_it_grew() -> None:
    assert bend([(1, 10.0), (2, 20.0), (4, 21.0)], is_rate=True) == 2
    assert bend([(1, 10.0), (2, 20.0), (4, 40.0)], is_rate=True) is None
    assert bend([(1, 10.0), (2, 14.0), (4, 16.0)], is_rate=False) == 4
    assert bend([(1, 10.0), (2, 9.0)], is_rate=False) is None


def test_findings_speak_of_measured_points_alone() -> None:
    assert three_points().findings() == [
        "fast, per second: 5.10x from 1 to 100; gains little after 10.",
        "fast, p50 ms: 20.00x from 1 to 100; bends at 10.",
    ]
    assert study(Point(series="alone", x=1, values={"per_s": 1.0, "ms": 1.0})).findings() == []


def test_targets_are_judged_by_their_limits_and_what_is_missing_is_not_reached() -> None:
    assert [verdict.is_reached for verdict in judge(all_found())] == [True] * 8
    assert judge(all_found(pending_ms=1.6))[7].is_reached is False
    workflows = judge(all_found())[4]
    assert (workflows.measured, workflows.of_minima) == (0.4, 0.25)
    assert [verdict.is_reached for verdict in judge(Found())] == [None] * 8
    assert Found().figures() == {}


def test_the_report_replaces_its_section_draws_its_pictures_and_keeps_the_rest(tmp_path: Path) -> None:
    page, images = tmp_path / "scaling.md", tmp_path / "images"
    page.write_text(f"# Before\n{BEGIN}\nold\n{END}\nafter\n", encoding="utf-8")
    found = all_found(pending_ms=1.6)
    report = Report(
        conditions="On a machine.", verdicts=judge(found), figures=found.figures(), studies=[three_points()]
    )
    report.write_docs(page, images)
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"# Before\n{BEGIN}\nOn a machine.\n")
    assert text.endswith(f"{END}\nafter\n")
    assert "old" not in text
    assert "| fast | 100 | 5,100 | 20.00 | measured |" in text
    assert "| fast | 1,000 |  | 200.00 | estimated |" in text
    assert "| <= 1.5x | 1.60x |  | MISSED |" in text
    assert "![Trial](../images/scaling-trial.svg)" in text
    assert (images / "scaling-trial.svg").read_text(encoding="utf-8").count("<svg") == 1
    assert "MISSED" in report.terminal()
    report.write_results(tmp_path / "results" / "scale.json")
    assert '"is_reached": false' in (tmp_path / "results" / "scale.json").read_text(encoding="utf-8")


def test_a_page_without_its_markers_is_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "scaling.md"
    page.write_text("nothing here\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="Put the markers back"):
        Report(conditions="", verdicts=[], figures={}, studies=[]).write_docs(page, tmp_path / "images")
    assert page.read_text(encoding="utf-8") == "nothing here\n"


def test_a_load_says_how_many_and_how_long_and_refuses_to_say_it_of_nothing() -> None:
    load = Load.of(2.0, [0.001] * 19 + [0.5])
    assert (load.per_s, load.p50_ms, load.p95_ms) == (10.0, 1.0, 500.0)
    with pytest.raises(SystemExit, match="measure longer"):
        Load.of(1.0, [])


def test_rows_written_in_bulk_form_a_chain_that_verifies_and_goes_on() -> None:
    rows = [row for chunk in _rows(10, 0, genesis(PROJECT)) for row in chunk]
    later = [row for chunk in _rows(2, rows[-1][1], rows[-1][8]) for row in chunk]
    assert verify(Event(*row) for row in rows + later) == 12
