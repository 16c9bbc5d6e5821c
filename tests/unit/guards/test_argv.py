"""Command lines read by grammar."""

from __future__ import annotations

import getopt
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgate.errors import DefinitionError
from toolgate.guards.argv import Parsed, parse
from toolgate.guards.grammar import Command, Flag, Limits, Positional, Value, pin
from toolgate.guards.words import ArgvRefused
from toolgate.kernel.policy import Word

PATH = Value(kind="path")
PATHS = Positional(name="path", value=PATH, maximum=None)
GREP = Command(
    name="grep",
    executable="/usr/bin/grep",
    flags=(
        Flag(names=("-i", "--ignore-case")),
        Flag(names=("-r",)),
        Flag(names=("-m", "--max-count"), value=Value(kind="int", minimum=1, maximum=1000)),
        Flag(names=("-e", "--regexp"), value=Value(), fills="pattern"),
        Flag(names=("-f", "--file"), value=PATH, fills="pattern"),
        Flag(names=("--color",), value=Value(kind="enum", choices=("auto", "never")), optional=True),
        Flag(names=("--include",), value=Value(kind="glob")),
        Flag(names=("-P",), word=Word.ASK, reason="slow patterns"),
        Flag(names=("--devices",), value=Value(), word=Word.DENY),
    ),
    positionals=(Positional(name="pattern", minimum=1), PATHS),
)
GIT = Command(
    name="git",
    executable="/usr/bin/git",
    flags=(Flag(names=("-C",), value=PATH), Flag(names=("--no-pager",))),
    subcommands=(
        Command(
            name="log",
            numbers=True,
            flags=(Flag(names=("--oneline",)), Flag(names=("-n",), value=Value(kind="int"))),
            positionals=(Positional(name="rev", value=Value(kind="path_or_rev"), maximum=None),),
            after_dashes=PATHS,
        ),
        Command(name="show", positionals=(Positional(name="rev", value=Value(kind="rev"), maximum=None),)),
        Command(name="push", word=Word.ASK, reason="it leaves this machine", network=True),
        Command(name="clean", word=Word.DENY),
        Command(name="commit", writes=True, environment=("GIT_AUTHOR_NAME",), limits=Limits(timeout_s=60)),
    ),
    needs_subcommand=True,
)
FIND = Command(
    name="find",
    executable="/usr/bin/find",
    combined=False,
    dashes="refused",
    flags=(
        Flag(names=("-name",), value=Value(kind="glob")),
        Flag(names=("-type",), value=Value(kind="enum", choices=("f", "d"))),
        Flag(names=("!", "(", ")", "-o")),
        Flag(names=("-exec", "-delete"), word=Word.DENY),
    ),
    positionals=(PATHS,),
)
PYTEST = Command(
    name="pytest", executable="/usr/bin/pytest", flags=(Flag(names=("-x",)), Flag(names=("-q",))), positionals=(PATHS,)
)
PYTHON = Command(
    name="python",
    executable="/usr/bin/python3",
    interspersed=False,
    flags=(
        Flag(names=("-V", "--version")),
        Flag(names=("-c",), value=Value(), word=Word.ASK, ends=True, fills="script"),
        Flag(names=("-m",), value=Value(), runs=True),
    ),
    positionals=(Positional(name="script", value=PATH, minimum=1), Positional(name="argument", maximum=None)),
)
SED = Command(
    name="sed",
    executable="/usr/bin/sed",
    flags=(Flag(names=("-n",)),),
    positionals=(Positional(name="script", value=Value(matches=r"\d+(,\d+)?p"), minimum=1), PATHS),
)
ABSENT = Command(name="absent")
TABLE = {command.name: command for command in (GREP, GIT, FIND, PYTEST, PYTHON, SED, ABSENT)}


def read(*argv: str) -> Parsed:
    return parse(TABLE, argv)


def paths(*argv: str) -> list[str]:
    return [use.path for use in read(*argv).paths]


@pytest.mark.parametrize(
    ("argv", "found"),
    [
        (["grep", "x"], []),
        (["grep", "-ri", "x", "a", "b"], ["a", "b"]),
        (["grep", "x", "a", "-i", "b"], ["a", "b"]),
        (["grep", "-e", "x", "a"], ["a"]),
        (["grep", "-ex", "a"], ["a"]),
        (["grep", "-rie", "x", "a"], ["a"]),
        (["grep", "--regexp=x", "a"], ["a"]),
        (["grep", "--regexp", "x", "a"], ["a"]),
        (["grep", "-m", "3", "x", "a"], ["a"]),
        (["grep", "-m3", "x", "a"], ["a"]),
        (["grep", "--max-count=3", "x", "a"], ["a"]),
        (["grep", "-f", "patterns", "a"], ["patterns", "a"]),
        (["grep", "--color", "x", "a"], ["a"]),
        (["grep", "--color=never", "x", "a"], ["a"]),
        (["grep", "--include=*.py", "-r", "x", "."], ["."]),
        (["grep", "--", "-x", "-a"], ["-a"]),
        (["grep", "x", "./-"], ["./-"]),
        (["grep", "a;b|c$(d)", "a b"], ["a b"]),
        (["git", "log", "--oneline", "-5", "HEAD~3..HEAD", "--", "src", "-odd"], ["HEAD~3..HEAD", "src", "-odd"]),
        (["git", "-C", "sub", "log"], ["sub"]),
        (["git", "show", "HEAD:.env", "main"], [".env"]),
        (["git", "show", "HEAD@{2 days ago}"], []),
        (["find", "src", "(", "-name", "*.py", "-o", "!", "-type", "d", ")"], ["src"]),
        (["python", "-m", "pytest", "-xq", "tests"], ["tests"]),
        (["python", "-mpytest", "tests"], ["tests"]),
        (["python", "tool.py", "-c", "--anything"], ["tool.py"]),
        (["sed", "-n", "1,20p", "a"], ["a"]),
    ],
)
def test_every_path_is_found(argv: list[str], found: list[str]) -> None:
    parsed = read(*argv)
    assert [use.path for use in parsed.paths] == found
    assert parsed.word is Word.ALLOW
    assert parsed.argv == (TABLE[argv[0]].executable, *argv[1:])


@pytest.mark.parametrize(
    ("argv", "kind"),
    [
        ([], "empty"),
        (["grep", "a\0"], "nul"),
        (["grep", "\udc80"], "encoding"),
        (["./grep", "x"], "not_bare"),
        (["/usr/bin/grep", "x"], "not_bare"),
        (["grep x"], "not_bare"),
        ([" grep", "x"], "not_bare"),
        (["GREP", "x"], "unknown_command"),
        (["rm", "-rf", "/"], "unknown_command"),
        (["absent"], "not_pinned"),
        (["grep"], "missing_argument"),
        (["grep", "-z", "x"], "unknown_flag"),
        (["grep", "-iz", "x"], "unknown_flag"),
        (["grep", "--ignore", "x"], "unknown_flag"),
        (["grep", "--ignore-case=yes", "x"], "unexpected_argument"),
        (["grep", "-m", "0", "x"], "bad_value"),
        (["grep", "-m", "many", "x"], "bad_value"),
        (["grep", "-m"], "missing_value"),
        (["grep", "--color=always", "x"], "bad_value"),
        (["grep", "--include=", "x"], "bad_value"),
        (["grep", "x", ""], "bad_value"),
        (["grep", "x", "-"], "bad_value"),
        (["grep", "x", "--", "-"], "bad_value"),
        (["grep", "-f", "-", "a"], "bad_value"),
        (["grep", "-f-", "a"], "bad_value"),
        (["git"], "missing_argument"),
        (["git", "--no-pager"], "missing_argument"),
        (["git", "--exec-path=/tmp", "log"], "unknown_flag"),
        (["git", "status"], "unknown_subcommand"),
        (["git", "show", "--output=x"], "unknown_flag"),
        (["git", "show", "--", "-x"], "bad_value"),
        (["git", "show", "a b"], "bad_value"),
        (["git", "push", "origin"], "unexpected_argument"),
        (["find", ".", "--", "x"], "dashes"),
        (["find", ".", "-fprint", "x"], "unknown_flag"),
        (["python", "-m", "http.server"], "unknown_command"),
        (["sed", "-n", "1e id", "a"], "bad_value"),
        (["grep", "x", *["a"] * 300], "too_long"),
        (["grep", "x" * 70_000], "too_long"),
    ],
)
def test_what_the_grammar_does_not_know_is_refused(argv: list[str], kind: str) -> None:
    with pytest.raises(ArgvRefused) as refused:
        parse(TABLE, argv)
    assert refused.value.kind == kind


def test_a_text_is_no_command_line() -> None:
    with pytest.raises(ArgvRefused):
        parse(TABLE, "grep x")
    with pytest.raises(ArgvRefused):
        parse(TABLE, ["grep", 3])  # type: ignore[list-item]  # hostile


@pytest.mark.parametrize(
    ("argv", "word", "reason"),
    [
        (["grep", "-P", "x"], Word.ASK, "slow patterns"),
        (["grep", "-P", "--devices=x", "y"], Word.DENY, "'grep --devices' is set to deny"),
        (["git", "push"], Word.ASK, "it leaves this machine"),
        (["git", "clean"], Word.DENY, "'git clean' is set to deny"),
        (["find", ".", "-delete"], Word.DENY, "'find -exec' is set to deny"),
        (["python", "-c", "print()"], Word.ASK, "'python -c' is set to ask"),
    ],
)
def test_the_strictest_word_of_all_parts_counts(argv: list[str], word: Word, reason: str) -> None:
    parsed = read(*argv)
    assert parsed.word is word
    assert reason in parsed.reasons


def test_what_a_run_may_take_comes_from_the_subcommand() -> None:
    parsed = parse(TABLE, ["git", "commit"], environment={"GIT_AUTHOR_NAME": "Ada"})
    assert (parsed.writes, parsed.network, parsed.limits.timeout_s) == (True, False, 60)
    assert parsed.environment == {"GIT_AUTHOR_NAME": "Ada"}
    assert parsed.subcommands == ("commit",)
    assert read("git", "push").network


@pytest.mark.parametrize("environment", [{"LD_PRELOAD": "x"}, {"GIT_AUTHOR_NAME": "a\0"}, {"GIT_AUTHOR_NAME": 1}])
def test_variables_that_are_not_listed_are_refused(environment: dict[str, str]) -> None:
    with pytest.raises(ArgvRefused):
        parse(TABLE, ["git", "commit"], environment=environment)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Command(name="a/b"),
        lambda: Command(name="-a"),
        lambda: Command(name="a", executable="bin/a"),
        lambda: Command(name="a", flags=(Flag(names=("-x",)), Flag(names=("-y", "-x")))),
        lambda: Command(name="a", subcommands=(Command(name="b"), Command(name="b"))),
        lambda: Command(name="a", positionals=(PATHS, PATHS)),
        lambda: Command(name="a", subcommands=(Command(name="b"),), needs_subcommand=True, positionals=(PATHS,)),
        lambda: Flag(names=()),
        lambda: Flag(names=("--",)),
        lambda: Flag(names=("-m",), runs=True),
        lambda: Value(kind="enum"),
        lambda: Value(kind="str", choices=("a",)),
        lambda: Value(matches="("),
    ],
    ids=[str(number) for number in range(13)],
)
def test_a_grammar_that_contradicts_itself_is_refused(make: object) -> None:
    with pytest.raises(DefinitionError):
        make()  # type: ignore[operator]  # a table of factories


def test_a_command_is_pinned_in_trusted_directories_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "frobnicate"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert pin(Command(name="frobnicate")).executable is None
    assert pin(Command(name="frobnicate"), also=[str(tmp_path)]).executable == str(program)
    found = pin(Command(name="ls")).executable
    assert found is not None
    assert os.path.isabs(found)
    assert pin(Command(name="ls", executable="/opt/ls")).executable == "/opt/ls"


SEARCH = Command(
    name="s",
    executable="/s",
    flags=(Flag(names=("-r",), spares="path"), Flag(names=("-o",), value=Value(kind="path", access="write"))),
    positionals=(Positional(name="pattern", minimum=1), Positional(name="path", value=PATH, minimum=1, maximum=None)),
)


def test_what_would_read_standard_input_is_told_that_there_is_none() -> None:
    with pytest.raises(ArgvRefused, match="needs an argument `path`; there is no standard input"):
        parse({"s": SEARCH}, ["s", "x"])
    with pytest.raises(ArgvRefused, match="needs an argument `pattern`"):
        parse({"s": SEARCH}, ["s"])


def test_a_flag_spares_a_positional() -> None:
    assert parse({"s": SEARCH}, ["s", "-r", "x"]).paths == ()
    assert [use.path for use in parse({"s": SEARCH}, ["s", "x", "-r", "a"]).paths] == ["a"]


def test_standard_output_and_the_branch_before_are_no_standard_input() -> None:
    assert [use.path for use in parse({"s": SEARCH}, ["s", "-r", "-o", "-", "x"]).paths] == ["-"]
    assert parse(TABLE, ["git", "log", "-"]).word is Word.ALLOW


MODEL = Command(
    name="m",
    executable="/m",
    flags=(
        Flag(names=("-a", "--all")),
        Flag(names=("-b",)),
        Flag(names=("-n", "--name"), value=PATH),
        Flag(names=("-o", "--output"), value=PATH),
    ),
    positionals=(PATHS,),
)
WORD = st.sampled_from(
    [
        "-a",
        "-b",
        "-ab",
        "-n",
        "-nx",
        "-abn",
        "-an",
        "--name",
        "--name=y",
        "--all",
        "--output",
        "--",
        "p",
        "q",
        "-",
        "-bo",
    ]
)


@given(words=st.lists(WORD, max_size=7))
def test_paths_are_those_that_getopt_finds(words: list[str]) -> None:
    """What a program with the same flags takes for a value or an argument is what gets checked."""
    try:
        options, loose = getopt.gnu_getopt(words, "abn:o:", ["all", "name=", "output="])
    except getopt.GetoptError:
        with pytest.raises(ArgvRefused):
            parse({"m": MODEL}, ["m", *words])
        return
    expected = sorted([*[value for _, value in options if value], *loose])
    if "-" in expected:
        with pytest.raises(ArgvRefused, match="no standard input"):
            parse({"m": MODEL}, ["m", *words])
        return
    assert sorted(use.path for use in parse({"m": MODEL}, ["m", *words]).paths) == expected


@given(argv=st.lists(st.text(max_size=12), max_size=8))
def test_no_text_makes_the_parser_fail_otherwise(argv: list[str]) -> None:
    for start in ([], ["git"], ["grep"], ["find"], ["python"]):
        try:
            parsed = parse(TABLE, [*start, *argv])
        except ArgvRefused:
            continue
        assert parsed.argv[1:] == (*start, *argv)[1:]


@pytest.mark.parametrize("value", ["src", ".", "./src:lib/python", "a.b/c", "src/"])
def test_directories_of_the_workspace_may_stand_in_a_search_path(value: str) -> None:
    table = {"x": Command(name="x", executable="/usr/bin/x", environment=("PYTHONPATH",))}
    assert parse(table, ["x"], environment={"PYTHONPATH": value}).environment == {"PYTHONPATH": value}


@pytest.mark.parametrize("value", ["/tmp/x", "..", "../x", "src:/etc", "src/../..", "", "~", ":", "a//b"])
def test_others_may_not(value: str) -> None:
    table = {"x": Command(name="x", executable="/usr/bin/x", environment=("PYTHONPATH",))}
    with pytest.raises(ArgvRefused, match="directories of the workspace"):
        parse(table, ["x"], environment={"PYTHONPATH": value})
