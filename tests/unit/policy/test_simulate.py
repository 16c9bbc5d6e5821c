"""Recorded calls are judged again as they were made: with what their paths led to then, in the mode of then."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
from tests.unit.kernel.samples import NOW, a_call, a_tool
from tests.unit.policy.asking import policy

from toolgate.kernel.call import Call, Status
from toolgate.kernel.event import genesis, seal
from toolgate.kernel.record import evolve
from toolgate.policy.diff import diff
from toolgate.policy.simulate import Simulation, Timeline

NEVER = Timeline(())


def recorded(arguments: Any = None, **fields: Any) -> Call:
    given = {"tool_name": "act", "arguments": orjson.dumps(arguments or {}), "shown": {}, "status": Status.COMPLETED}
    return a_call(**{**given, **fields})


def test_changes_are_grouped_by_tool_and_kind() -> None:
    new = policy("tools: {act: {arguments: [{field: n, above: 5, then: deny}]}, pay: {decision: ask}}")
    simulation = Simulation(new, NEVER)
    simulation.replay(recorded({"n": number}, id=f"c{number}") for number in range(10))
    simulation.replay([recorded(tool_name="pay"), recorded(tool_name="pay", level="quick")])
    found = simulation.as_json()
    assert (found["calls"], found["changed"]) == (12, 5)
    assert [(one["tool"], one["from"], one["to"], one["count"], one["is_stricter"]) for one in found["groups"]] == [
        ("act", "allow", "deny", 4, True),
        ("pay", "allow", "ask", 1, True),
    ]
    assert found["groups"][0]["examples"] == ["c6", "c7", "c8", "c9"]
    assert found["groups"][0]["reasons"] == [{"reason": "arguments: argument 'n' above 5.0", "count": 4}]
    assert found["tools_not_registered_here"] == ["act", "pay"]


def test_only_some_examples_are_kept() -> None:
    simulation = Simulation(policy("default: deny"), NEVER, tools={"act": a_tool("act")})
    simulation.replay(recorded(id=f"c{number}") for number in range(9))
    [group] = simulation.as_json()["groups"]
    assert (len(group["examples"]), group["count"]) == (5, 9)
    assert simulation.as_json()["tools_not_registered_here"] == []


def test_a_looser_policy_shows_as_well() -> None:
    simulation = Simulation(policy(""), NEVER)
    simulation.replay([recorded(status=Status.DENIED, error_code="denied"), recorded(level="full", has_effects=False)])
    assert [
        (one["from"], one["to"], one["is_stricter"], one["reasons"][0]["reason"])
        for one in simulation.as_json()["groups"]
    ] == [
        ("ask", "allow", False, "no rule speaks"),
        ("deny", "allow", False, "no rule speaks"),
    ]


def test_what_cannot_be_judged_again_is_counted() -> None:
    simulation = Simulation(policy("default: deny"), NEVER)
    simulation.replay(
        [
            recorded(undo_of="c0"),
            recorded(error_code="rate_limited", status=Status.DENIED),
            recorded(shown=None),
            evolve(recorded(arguments=None), arguments=b"null"),
        ]
    )
    assert simulation.as_json()["skipped"] == {"undo": 1, "rate_limited": 1, "arguments forgotten": 2}
    assert simulation.calls == 0


def test_the_mode_of_then_counts() -> None:
    at = NOW - timedelta(hours=1)
    told = seal(("mode.changed", None, {"to": "ALERT"}, None), "_system", 1, at, genesis("_system"))
    other = seal(("policy.changed", None, {"to": "x"}, None), "_system", 2, at, told.hash)
    simulation = Simulation(policy("tools: {act: {requires_approval_in_modes: [ALERT]}}"), Timeline([told, other]))
    simulation.replay([recorded(), recorded(created_at=NOW - timedelta(hours=2))])
    assert simulation.changed == 1


def test_the_brakes_of_then_count_for_those_they_were_pulled_over() -> None:
    at, scope = NOW - timedelta(hours=1), {"project": recorded().context.project, "run": "r1"}
    data = {"to": "ALERT", "scope": scope, "holds": []}
    told = seal(("mode.changed", None, data, None), "_system", 1, at, genesis("_system"))
    simulation = Simulation(policy("tools: {act: {requires_approval_in_modes: [ALERT]}}"), Timeline([told]))
    braked = evolve(recorded(), context=evolve(recorded().context, run_id="r1"))
    simulation.replay([recorded(), braked])
    assert simulation.changed == 1


def test_another_policy_can_stand_in_for_what_was_recorded() -> None:
    old, new = policy("tools: {act: {decision: ask}}"), policy("tools: {act: {decision: deny}}")
    simulation = Simulation(new, NEVER, old=old)
    simulation.replay([recorded()])
    assert simulation.as_json()["groups"][0]["from"] == "ask"


def test_paths_are_taken_from_the_record(tmp_path: Path) -> None:
    new = policy("tools: {act: {allowed_paths: ['/then/**'], decision: allow}}", workspace=tmp_path)
    kept = {"argument": "path", "access": "write", "path": "/then/x", "root": "/then", "kind": "file", "size": 3}
    simulation = Simulation(new, NEVER)
    simulation.replay(
        [
            recorded({"path": "moved"}, facts={"paths": [kept]}),
            recorded({"path": "moved", "file": "/then/other"}, facts={"paths": [kept]}),
            recorded({"path": "moved", "file": 5}, facts={"paths": [kept]}),
            recorded({"path": "bad"}, facts={"paths": [{"argument": "path", "access": "write", "refused": "no"}]}),
            recorded({"path": "now"}),
        ]
    )
    assert [group.count for group in simulation.groups.values()] == [3]


def test_commands_are_read_anew(tmp_path: Path) -> None:
    new = policy("tools: {act: {commands: {}}}\ncommands: {ls: {executable: /bin/ls}}", workspace=tmp_path)
    simulation = Simulation(new, NEVER)
    simulation.replay([recorded({"command": ["ls"]}, facts={"commands": {}, "paths": []})])
    assert simulation.changed == 0


def test_a_difference_is_a_key_and_a_shift_a_verdict() -> None:
    old = policy("tools: {a: {decision: allow}, b: {roles: {allowed: [x]}}, 'c*': {decision: deny}}")
    new = policy("default: deny\ntools: {a: {decision: ask}, b: {roles: {allowed: [x, y]}}, 'c*': {decision: deny}}")
    found = diff(old, new)
    assert [(one.path, one.old, one.new) for one in found.differences] == [
        ("default", None, "deny"),
        ("tools.a.decision", "allow", "ask"),
        ("tools.b.roles.allowed", ["x"], ["x", "y"]),
    ]
    assert ("a", "NORMAL", "allow", "ask") in found.shifts
    assert ("b", "NORMAL", "allow", "deny") in found.shifts
    assert all(shift.is_stricter for shift in found.shifts)
    assert diff(old, old).differences == ()
    assert found.as_json()["shifts"][0]["is_stricter"] is True


def test_layers_are_told_apart(tmp_path: Path) -> None:
    from toolgate.policy import load_policy

    (tmp_path / "org.yaml").write_text("layer: org\ndefault: deny")
    (tmp_path / "a.yaml").write_text("include: [org.yaml]")
    (tmp_path / "b.yaml").write_text("include: [org.yaml]\ntools: {x: {}}")
    found = diff(load_policy(tmp_path / "a.yaml"), load_policy(tmp_path / "b.yaml"))
    assert [one.path for one in found.differences] == ["tools.x"]


AT_STAKE = "tools: {act: {arguments: [{field: n, above: 5, then: ask, approval: {level: full, quorum: 2}}]}}"


def test_asking_other_people_is_a_change_too() -> None:
    simulation = Simulation(policy(AT_STAKE), NEVER, old=policy("tools: {act: {decision: ask}}"))
    simulation.replay([recorded({"n": 9}), recorded({"n": 1})])
    [group, _] = sorted(simulation.as_json()["groups"], key=lambda one: one["to"], reverse=True)
    assert (group["from"], group["to"], group["is_stricter"]) == ("ask", "ask", True)
    asks, before = group["reasons"][0]["reason"].split("; ")
    assert asks == "asks at level full, 2 people other than the requester"
    assert before == "before at level quick, 1 person other than the requester"
    back = Simulation(policy("tools: {act: {decision: ask}}"), NEVER, old=policy(AT_STAKE))
    back.replay([recorded({"n": 9})])
    assert [one["is_stricter"] for one in back.as_json()["groups"]] == [False]
    same = Simulation(policy(AT_STAKE), NEVER, old=policy(AT_STAKE))
    same.replay([recorded({"n": 9}), recorded({"n": 1})])
    assert same.changed == 0


def test_of_recorded_calls_the_level_is_compared_but_for_those_a_person_edited() -> None:
    simulation = Simulation(policy(AT_STAKE), NEVER)
    simulation.replay([recorded({"n": 9}, level="quick"), recorded({"n": 9}, level="full")])
    simulation.replay([recorded({"n": 9}, level="quick", first_asked="other")])
    simulation.replay([recorded({"n": "x"}, status=Status.DENIED, error_code="denied")])
    [group] = simulation.as_json()["groups"]
    assert (group["count"], group["is_stricter"]) == (1, True)
