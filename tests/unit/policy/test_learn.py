"""What is learned from a command line nobody's grammar knows: that line, and nothing beside it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolgate.catalog import built_in_tools
from toolgate.errors import UsageError
from toolgate.kernel.call import Call, Status
from toolgate.kernel.context import Context, Mode
from toolgate.kernel.policy import Word
from toolgate.kernel.tool import ToolDefinition
from toolgate.policy.compile import FilePolicy
from toolgate.policy.examples import a_call, stand_in
from toolgate.policy.explain import Question, explain
from toolgate.policy.learn import Proposal, propose, question_about
from toolgate.policy.loader import load_policy, revise_policy

TOOLS = """\
version: 1
include: [commands.yaml]
default: deny
tools:
  execute_command:
    commands: {unknown: ask}
    paths: {allowed: ["${WORKSPACE}/**"]}
"""
COMMANDS = """\
# Kept as it is.
commands:
  cat:
    switches: "-n"   # lines
    positionals: [{name: path, value: path, at_most: any}]
  git:
    subcommands:
      log: {switches: "--oneline"}
      push: {decision: ask}
      gc: {decision: deny}
    flags:
      --force: {decision: ask}
  rm: {decision: deny}
  # The last one.
  true:
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("learn")
    (folder / "toolgate.yaml").write_text(TOOLS)
    (folder / "commands.yaml").write_text(COMMANDS.replace("true:", '"true":'))
    return folder


@pytest.fixture(scope="module")
def policy(place: Path) -> FilePolicy:
    return load_policy(place, workspace=place)


def tool_of(policy: FilePolicy) -> ToolDefinition:
    return next(tool for tool in built_in_tools(policy.edges) if tool.name == "execute_command")


def asked(policy: FilePolicy, line: str | list[str], **more: Any) -> Question:
    words: dict[str, Any] = {"command": line} if isinstance(line, str) else {"command": line[0], "args": line[1:]}
    return Question(tool=tool_of(policy), arguments={**words, **more}, context=Context(), mode=Mode.NORMAL)


def learned(policy: FilePolicy, line: str | list[str], **more: Any) -> tuple[Proposal, FilePolicy]:
    proposal = propose(policy, asked(policy, line, **more))
    return proposal, revise_policy(policy, proposal.texts)


def word(policy: FilePolicy, line: str | list[str], **more: Any) -> Word:
    return explain(policy, asked(policy, line, **more)).ruling.word


def test_the_line_is_told_with_its_variables(policy: FilePolicy) -> None:
    proposal, then = learned(policy, "B='x y' A=1 factor 3")
    assert proposal.lines == ("A=1 B='x y' factor 3",)
    assert proposal.revised == then.revision != proposal.revision
    assert [word(then, line) for line in ("factor 3", "A=1 factor 3", "A=1 B=x factor 3")] == [Word.ASK] * 3


def test_the_diff_is_the_line_to_the_letter_and_keeps_the_file(policy: FilePolicy) -> None:
    proposal, then = learned(policy, "factor 12 'a b'")
    assert proposal.diff == (
        "--- a/commands.yaml\n+++ b/commands.yaml\n@@ -13,3 +13,8 @@\n   rm: {decision: deny}\n   # The last one.\n"
        '   "true":\n+  factor:\n+    limits: {timeout: 600s}\n+    only_lines: true\n+    lines:\n'
        '+      - {args: ["12", "a b"], writes: true}\n'
    )
    assert (proposal.then, proposal.lines) == (Word.ALLOW, ("factor 12 'a b'",))
    assert proposal.as_json()["then"] == "allow"
    assert then.commands["factor"].network is False


SAMPLES = [
    "factor 3",
    "factor",
    "git log --stat",
    "git log --stat -- a b",
    "git frobnicate",
    "cat -Z x",
    "true now",
    "A=1 factor 3",
    "factor 3 | cksum -x",
    "factor 3 > out.txt",
    "factor 3 && factor 3 && factor 4",
    "cd . && factor 5",
    "LANG=C git log --stat",
    "ruby -w build.rb",
]


@pytest.mark.parametrize("line", SAMPLES)
def test_the_same_line_runs_unasked_afterwards_and_its_neighbours_are_asked_about(
    policy: FilePolicy, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolgate.guards.programs._first", _everywhere)
    assert word(policy, line) is Word.ASK
    proposal, then = learned(policy, line)
    assert (proposal.then, word(then, line)) == (Word.ALLOW, Word.ALLOW)
    for other in (f"{line} --more", f"{line} more", f"B=2 {line}", f"{line} | rev", f"{line} ; factor 77"):
        assert word(then, other) is Word.ASK
    assert word(then, f"{line} ../outside") is Word.DENY
    with pytest.raises(UsageError, match="nothing to learn"):
        propose(then, asked(then, line))


def _everywhere(_name: str, *_directories: object) -> str:
    return "/usr/bin/env"


WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=12).filter(
    lambda text: not text.strip().startswith(("/", ".", "~")) and "/" not in text and ".." not in text
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    command=st.sampled_from(["factor", "cksum", "git", "cat"]),
    args=st.lists(st.one_of(WORDS, WORDS.map(lambda text: f"--{text}")), min_size=1, max_size=5),
    other=WORDS,
    at=st.integers(0, 5),
)
def test_whatever_the_words_are_only_they_are_learned(
    policy: FilePolicy, command: str, args: list[str], other: str, at: int
) -> None:
    line = [command, *args]
    if word(policy, line) is not Word.ASK:
        return
    try:
        _, then = learned(policy, line)
    except UsageError as refused:
        assert "cannot be remembered" in str(refused) or "whatever stands beside it" in str(refused)  # noqa: PT017  # only some lines are refused
        return
    assert word(then, line) is Word.ALLOW
    changed = [*line]
    changed[1 + at % len(args)] = other
    for neighbour in (changed, [*line, other], line[:-1], [command, other, *args]):
        if neighbour != line and len(neighbour) > 1:
            assert word(then, neighbour) is word(policy, neighbour)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("python3 -c 'print(1)'", r"`python3` runs code that is written in the line \(-c\)"),
        ("python3.11 -Ic 'print(1)'", "code that is written in the line"),
        ("perl -we '1'", "code that is written in the line"),
        ("perl -i.bak -pe 's/a/b/' x", "code that is written in the line"),
        ("node --eval=1", "code that is written in the line"),
        ("perl", "whatever code its input is"),
        ("factor 3 | perl x.pl", "whatever code its input is"),
        ("awk '{print}' x", "takes code as its arguments"),
        ("env factor 3", "`env` runs other programs"),
        ("xargs factor", "`xargs` runs other programs"),
        ("sudo factor 3", "`sudo` runs other programs"),
        ("sh -x build.sh", "`sh` runs other programs"),
        ("for i in 1; do factor $i; done", "runs other programs"),
        ("git push --porcelain", "asked about `git push`"),
        ("git --force log --stat", "asked about `git --force`"),
        ("./build", "no program of a trusted directory"),
        ("/usr/bin/factor 3", "as it was written"),
        ("timeout 5 ./build", "`timeout` runs other programs"),
        ("nice factor 3", "`nice` runs other programs"),
        ("A=1 ./build", "no program of a trusted directory"),
        ("cksum --algorithm ./build", "names .*build, a program of the workspace"),
        ("cd . && cksum -a=./build", "names .*build, a program of the workspace"),
        ("sort --compress-program=./later x", "start another program, or load code"),
        ("gcc -wrapper ./later x.c", "start another program, or load code"),
        ("git -c alias.z=!./later z", "`-c` has it start another program"),
        ("git submodule foreach ls", "`foreach` has it start another program"),
        ("uv run later", "`run` has it start another program"),
        ("run-parts .", "runs other programs"),
        ("git gc --auto", "would allow this call: 'git gc' is denied"),
        ("rm -x", "is denied"),
        ("git log --oneline", "nothing to learn"),
    ],
)
def test_what_must_not_be_learned_is_refused_with_the_reason(
    policy: FilePolicy, place: Path, line: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "/" not in line.replace("./later", ""):
        monkeypatch.setattr("toolgate.guards.programs._first", _everywhere)
    (place / "build").write_text("#!/bin/sh\n")
    (place / "build").chmod(0o755)
    with pytest.raises(UsageError, match=why):
        propose(policy, asked(policy, line))


def test_a_program_of_the_workspace_is_learned_only_where_the_policy_takes_it_from_there(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("frob", "frobtest"):
        (tmp_path / "bin" / name).write_text("#!/bin/sh\n")
        (tmp_path / "bin" / name).chmod(0o755)
    own = 'tool_directories: ["${WORKSPACE}/bin"]\ncommands:\n  frobtest: {from_workspace: true}\n'
    (tmp_path / "toolgate.yaml").write_text(TOOLS.replace("include: [commands.yaml]\n", own))
    policy = load_policy(tmp_path, workspace=tmp_path)
    with pytest.raises(UsageError, match="frob is a program of the workspace"):
        propose(policy, asked(policy, "frob 1"))
    proposal, then = learned(policy, "frobtest 1")
    assert (proposal.then, word(then, "bin/frobtest 1"), word(then, "frobtest 2")) == (Word.ALLOW, Word.ALLOW, Word.ASK)


def test_what_else_asks_still_asks_and_the_proposal_says_so(place: Path, policy: FilePolicy) -> None:
    proposal, _ = learned(policy, "git push && factor 3")
    assert proposal.then is Word.ASK
    assert "git push" in proposal.because


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ("", "factor 3", "commands:\n  factor:\n    limits: {timeout: 600s}\n    only_lines: true\n    lines:\n"),
        (
            "commands: {}\n",
            "factor 3",
            'commands: {factor: {limits: {timeout: 600s}, only_lines: true, lines: [{args: ["3"], writes',
        ),
        ("commands: {cat: {}}\n", "cat x", 'commands: {cat: {lines: [{args: ["x"], writes: true}]}}'),
        ("commands: {cat: }\n", "cat x", "commands: {cat: {lines: [{args"),
        ("commands:\n  cat:\n    lines: []\n    network: false", "cat x", 'lines: [{args: ["x"], writes: true}]'),
        ("commands:\n  cat:\n    lines: [{args: [a]}]", "cat x", 'lines: [{args: ["x"], writes: true}, {args: [a]}]'),
        ("commands:\n  cat:\n    lines:\n    - args: [a]\n  # end", "cat x", "    - args: [a]\n    - {args"),
        ("commands:\n  cat:\n    switches: >-\n      -n\n\n  # end\n", "cat x", "    lines:\n      - {args"),
        (
            "commands:\r\n  cat: {}\r\n",
            "factor 3",
            "  factor:\r\n    limits: {timeout: 600s}\r\n    only_lines: true\r\n    lines:\r\n",
        ),
        ("commands:\n  cat: ~ # all\n  ls: {}\n", "cat x", '  cat:  {lines: [{args: ["x"], writes: true}]} # all\n'),
        ("commands:\n  cat:\n  # of ls\n  ls:\ntools: {}\n", "cat x", "  cat: {lines: [{args"),
        ("commands:\n  cat:\n  # of ls\n  ls:\n\n# of tools\ntools: {}\n", "factor 3", "  ls:\n  factor:\n"),
        ("commands:\n  cat:\n    switches: >-\n      -n\n  ls: {}\n", "cat x", "      -n\n    lines:\n"),
        ("commands:\n  cat:", "factor 3", "  cat:\n  factor:\n"),
        ("commands:\n  cat: {}\n", "yes no", '  "yes":\n    limits'),
    ],
)
def test_every_way_a_file_may_be_written_takes_a_line(tmp_path: Path, text: str, line: str, part: str) -> None:
    (tmp_path / "toolgate.yaml").write_text(TOOLS)
    (tmp_path / "commands.yaml").write_bytes(text.encode())
    if not text:
        (tmp_path / "toolgate.yaml").write_text(TOOLS.replace("include: [commands.yaml]\n", ""))
    policy = load_policy(tmp_path, workspace=tmp_path)
    proposal, then = learned(policy, line)
    [changed] = proposal.texts.values()
    assert part in changed
    assert word(then, line) is Word.ALLOW
    assert word(then, f"{line} more") is Word.ASK
    assert word(then, shlex.split(line)[0]) is word(policy, shlex.split(line)[0])


def test_a_file_without_line_end_and_an_empty_one(tmp_path: Path) -> None:
    from toolgate.guards.grammar import ExactLine
    from toolgate.policy.amend import Addition, add_line

    addition = Addition("factor", ExactLine(args=("3",), input=True), None)
    added = 'commands:\n  factor:\n    lines:\n      - {args: ["3"], input: true}\n'
    assert add_line("", addition) == added
    assert add_line("# nothing", addition) == f"# nothing\n{added}"
    with pytest.raises(UsageError, match="no mapping for `factor` in line 1"):
        add_line("commands: [a]", addition)


def call_of(policy: FilePolicy, **more: Any) -> Call:
    from toolgate.kernel.record import evolve

    made = a_call(tool_of(policy), {"command": "factor 3"}, Context())
    return evolve(made, **{"shown": {"command": "factor 3"}, **more})


def test_a_recorded_call_is_learned_from_unless_it_was_refused_or_hides_something(policy: FilePolicy) -> None:
    tools = {"execute_command": tool_of(policy)}
    assert propose(policy, question_about(call_of(policy), tools)).then is Word.ALLOW
    for more, why in (
        ({"hides": True}, "masked"),
        ({"shown": None}, "forgotten"),
        ({"status": Status.REJECTED, "reason": "not here"}, r"denied \(not here\)"),
        ({"tool_name": "other"}, "no tool 'other' here"),
    ):
        with pytest.raises(UsageError, match=why):
            question_about(call_of(policy, **more), tools)


def test_a_tool_without_the_rule_has_nothing_to_learn(policy: FilePolicy) -> None:
    question = Question(tool=stand_in("pay"), arguments={}, context=Context(), mode=Mode.NORMAL)
    with pytest.raises(UsageError, match="no rule `commands`"):
        propose(policy, question)


def test_lines_stand_at_the_command_itself(tmp_path: Path) -> None:
    from toolgate.errors import PolicyError

    (tmp_path / "toolgate.yaml").write_text("commands: {git: {subcommands: {log: {lines: [{args: [x]}]}}}}\n")
    with pytest.raises(PolicyError, match="`lines` stand at"):
        load_policy(tmp_path)


def test_a_program_of_the_workspace_is_never_remembered_whoever_runs_it(
    policy: FilePolicy, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent can change such a program after the line was learned."""
    (place / "own").write_text("#!/bin/sh\n")
    (place / "own").chmod(0o755)
    monkeypatch.setattr("toolgate.guards.programs._first", _everywhere)
    for line in ("factor own", f"factor {place}/own", "timeout 5 ./own"):
        with pytest.raises(UsageError, match="cannot be remembered"):
            propose(policy, asked(policy, line))
    (place / "own").unlink()
    assert propose(policy, asked(policy, "factor own")).then is Word.ALLOW


def test_a_command_that_runs_others_by_its_grammar_is_never_remembered(tmp_path: Path) -> None:
    (tmp_path / "toolgate.yaml").write_text(TOOLS)
    runner = "factor: {subcommands: {run: {runs: project, interspersed: false}}}"
    (tmp_path / "commands.yaml").write_text(f"commands:\n  {runner}\n")
    found = load_policy(tmp_path, workspace=tmp_path)
    with pytest.raises(UsageError, match="runs other programs"):
        propose(found, asked(found, "factor --odd x"))
