"""`commands: {unknown: ask}`: a command without grammar is a question; without it, a denial that says what helps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.policy.asking import ask, policy, word

from toolgate.policy.examples import stand_in

TEXT = """
version: 1
default: allow
tools:
  run: {commands: {unknown: ask}, paths: {allowed: ["${WORKSPACE}/**"]}}
  strict: {commands: {}}
  listed: {commands: {allowed: [cat], unknown: ask}}
commands:
  cat: {positionals: [{name: path, value: path, at_least: 1, at_most: any}]}
  rm: {decision: deny}
""".replace("default: allow\n", "")


def test_the_unknown_is_asked_about_and_the_known_is_not(tmp_path: Path) -> None:
    found = ask(TEXT, {"command": ["ls", "-l"]}, tool="run", workspace=tmp_path)
    assert found.word.value == "ask"
    assert "'ls' is not in the policy's table of commands" in str(found)
    assert word(TEXT, {"command": ["cat", "x"]}, tool="run", workspace=tmp_path) == "allow"


@pytest.mark.parametrize(
    "line",
    [
        ["ls", ".env"],
        ["ls", "--file=sub/.env"],
        ["ls", "../x"],
        ["ls", "/etc/passwd"],
        ["rm", "--unheard-of"],
        ["no-such-program"],
    ],
)
def test_what_is_refused_stays_refused(tmp_path: Path, line: list[str]) -> None:
    assert word(TEXT, {"command": line}, tool="run", workspace=tmp_path) == "deny"


def test_a_denial_says_what_would_help(tmp_path: Path) -> None:
    found = ask(TEXT, {"command": ["ls"]}, tool="strict", workspace=tmp_path)
    assert found.word.value == "deny"
    assert "`commands: {unknown: ask}`" in str(found)
    assert "p.yaml" in str(found)


@pytest.mark.parametrize(
    ("tool", "command", "named", "way"),
    [
        ("listed", ["ls"], "'ls'", "`commands: {allowed: [...]}`"),
        ("strict", ["rm"], "rm", "`ask` there has a person asked"),
        ("strict", ["ls"], "'ls'", "under `commands:`"),
        ("strict", ["cat", "--odd", "x"], "'--odd'", "`commands: {unknown: ask}`"),
    ],
)
def test_every_denial_names_the_word_the_file_and_the_way_out(
    tmp_path: Path, tool: str, command: list[str], named: str, way: str
) -> None:
    found = ask(TEXT, {"command": command}, tool=tool, workspace=tmp_path)
    assert found.word.value == "deny"
    assert all(one in str(found) for one in (named, way, "p.yaml"))


def test_a_list_of_names_keeps_the_unknown_out(tmp_path: Path) -> None:
    assert word(TEXT, {"command": ["ls"]}, tool="listed", workspace=tmp_path) == "deny"
    assert word(TEXT, {"command": ["cat", "--unheard-of"]}, tool="listed", workspace=tmp_path) == "ask"


def test_a_relative_start_is_where_programs_are_looked_for(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    script = tmp_path / "sub" / "run.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    assert word(TEXT, {"command": ["./run.sh"], "cwd": "sub"}, tool="run", workspace=tmp_path) == "ask"
    assert word(TEXT, {"command": ["./run.sh"]}, tool="run", workspace=tmp_path) == "deny"


def test_the_strictest_layer_decides_about_the_unknown(tmp_path: Path) -> None:
    found = policy(TEXT, tmp_path)
    edges = found.edges()
    assert not edges.asks_unknown("run")  # nothing was asked about this tool yet
    stances = {name: found.stance(stand_in(name)) for name in ("run", "strict", "other")}
    assert {name: edges.asks_unknown(name) for name in stances} == {"run": True, "strict": False, "other": False}
    assert {name: stance.asks for name, stance in stances.items()} == {"run": True, "strict": False, "other": False}


LINES = replace(stand_in("run"), input_schema={"type": "object", "properties": {"command": {"format": "shell-line"}}})


def test_asking_for_a_network_is_a_question_and_opens_no_denial(tmp_path: Path) -> None:
    def said(command: str, network: object) -> tuple[str, str]:
        found = ask(TEXT, {"command": command, "network": network}, tool=LINES, workspace=tmp_path)
        return found.word.value, str(found)

    assert said("cat x", False)[0] == said("cat x", "true")[0] == "allow"
    assert said("cat x", True)[0] == "ask"
    assert "a network is asked for" in said("cat x", True)[1]
    both = said("ls -l && cat x > y", True)
    assert both[0] == "ask"
    assert "no grammar knows this command" in both[1]
    assert "a network is asked for" in both[1]
    assert said("rm x", True)[0] == "deny"


WRAPPED = """
version: 1
tools:
  some: {commands: {allowed: [timeout, cat, python]}}
  every: {commands: {}}
commands:
  cat: {positionals: [{name: path, value: str, at_least: 1}]}
  ls: {}
  env: {runs: alone, interspersed: false}
  timeout: {runs: command, interspersed: false, positionals: [{name: duration, value: int, at_least: 1}]}
  npm: {decision: ask, writes: true, subcommands: {"test t": {calms: true}, ci: }}
  sed: {positionals: [{name: script, value: {excludes: "e"}}], switches: "-n"}
  touch: {decision: ask, writes: true, flags: {--check: {calms: true}, --out: {writes: true}}}
"""


@pytest.mark.parametrize(
    ("tool", "line", "expected"),
    [
        ("some", "timeout 5 cat x", "allow"),
        ("some", "env CI=1 cat x", "allow"),
        ("some", "timeout 5 ls", "deny"),
        ("some", "env ls", "deny"),
        ("every", "timeout 5 ls", "allow"),
        ("every", "npm t", "allow"),
        ("every", "npm test", "allow"),
        ("every", "npm ci", "ask"),
        ("every", "sed -n 1p", "allow"),
        ("every", "sed -n 1e", "deny"),
        ("every", "touch --out", "ask"),
        ("every", "touch --out --check", "allow"),
    ],
)
def test_a_command_inside_another_is_judged_as_well(tmp_path: Path, tool: str, line: str, expected: str) -> None:
    assert word(WRAPPED, {"command": line.split()}, tool=tool, workspace=tmp_path) == expected
