"""Commands that run another command: judged as that one is, and never less strictly."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from toolgate.errors import DefinitionError
from toolgate.guards.argv import Parsed, parse
from toolgate.guards.grammar import Command, Flag, Positional, Value
from toolgate.guards.programs import CommandTable
from toolgate.guards.unknown import read_argv
from toolgate.guards.words import ArgvRefused
from toolgate.kernel.policy import Word

PATHS = Positional(name="path", value=Value(kind="path"), maximum=None)
DURATION = Positional(name="duration", value=Value(matches=r"\d+s?"), minimum=1)


def command(name: str, **more: object) -> Command:
    return Command(name=name, executable=f"/usr/bin/{name}", **more)  # type: ignore[arg-type]


CAT = command("cat", positionals=(PATHS,), environment=("PAGER",))
RM = command("rm", word=Word.DENY, positionals=(PATHS,))
CP = command("cp", word=Word.ASK, reason="it overwrites", writes=True, positionals=(PATHS,))
FETCH = command("fetch", word=Word.ASK, network=True, positionals=(PATHS,))
TABLE = {
    each.name: each
    for each in (
        CAT,
        RM,
        CP,
        FETCH,
        command("git", positionals=(PATHS,)),
        Command(name="absent", positionals=(PATHS,)),
        command("env", runs="alone", interspersed=False),
        Command(name="time", runs="alone", interspersed=False),
        command("careful", runs="alone", interspersed=False, word=Word.ASK),
        command("never", runs="alone", interspersed=False, word=Word.DENY),
        command("timeout", runs="command", interspersed=False, flags=(Flag(names=("-v",)),), positionals=(DURATION,)),
        command("xargs", runs="command", interspersed=False, run_only=("cat",)),
        command("uv", subcommands=(Command(name="run", runs="project", interspersed=False),)),
    )
}


def read(*argv: str, **variables: str) -> Parsed:
    return parse(TABLE, argv, environment=variables)


def refused(*argv: str, **variables: str) -> str:
    with pytest.raises(ArgvRefused) as caught:
        parse(TABLE, argv, environment=variables)
    return caught.value.kind


@pytest.mark.parametrize(
    ("line", "argv"),
    [
        ("env cat a", ["/usr/bin/cat", "a"]),
        ("time cat a", ["/usr/bin/cat", "a"]),
        ("time env CI=1 time cat a", ["/usr/bin/cat", "a"]),
        ("env", ["/usr/bin/env"]),
        ("env -- cat a", ["/usr/bin/env", "--", "/usr/bin/cat", "a"]),
        ("timeout 5 cat a", ["/usr/bin/timeout", "5", "/usr/bin/cat", "a"]),
        ("timeout -v -- 5 cat -- -a", ["/usr/bin/timeout", "-v", "--", "5", "/usr/bin/cat", "--", "-a"]),
        (
            "timeout 5 timeout 5s cat a",
            ["/usr/bin/timeout", "5", "/usr/bin/timeout", "5s", "/usr/bin/cat", "a"],
        ),
        ("timeout 5 env cat", ["/usr/bin/timeout", "5", "/usr/bin/env", "/usr/bin/cat"]),
        ("env timeout 5 cat cat", ["/usr/bin/timeout", "5", "/usr/bin/cat", "cat"]),
        ("uv run cat a", ["/usr/bin/uv", "run", "cat", "a"]),
        ("uv run absent a", ["/usr/bin/uv", "run", "absent", "a"]),
    ],
)
def test_the_program_that_runs_is_the_pinned_one(line: str, argv: list[str]) -> None:
    assert list(read(*line.split()).argv) == argv


@pytest.mark.parametrize("front", ["env", "time", "env CI=1", "timeout 5", "timeout 5 env", "uv run", "time timeout 5"])
def test_what_is_in_front_frees_nothing(front: str) -> None:
    before = front.split()
    for line in (["cat", "a"], ["cp", "a", "b"], ["rm", "a"], *([["fetch", "x"]] if front != "uv run" else [])):
        alone, wrapped = read(*line), read(*before, *line)
        assert (wrapped.word, wrapped.network, wrapped.writes, wrapped.paths, wrapped.limits) == (
            alone.word, alone.network, alone.writes, alone.paths, alone.limits,
        )  # fmt: skip


def test_what_is_in_front_counts_itself() -> None:
    assert read("careful", "cat", "a").reasons == ("'careful' is set to ask",)
    assert read("careful", "rm", "a").word is Word.DENY
    assert read("never", "cat", "a").word is Word.DENY
    assert read("timeout", "5", "careful", "cat", "a").word is Word.ASK


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("env -i cat a", "unknown_flag"),
        ("env -- A=1 cat a", "unknown_command"),
        ("env A=1", "unknown_command"),
        ("env A=1 -u B cat", "unknown_command"),
        ("env FOO=1 cat a", "environment"),
        ("env LD_PRELOAD=x cat a", "environment"),
        ("env CI=/etc cat a", "environment"),
        ("env ./cat a", "not_bare"),
        ("env /tmp/cat a", "not_bare"),
        ("env bash -c id", "unknown_command"),
        ("time", "not_pinned"),
        ("env absent", "not_pinned"),
        ("timeout 5 absent", "not_pinned"),
        ("timeout 5 time cat", "not_pinned"),
        ("timeout 5", "missing_argument"),
        ("timeout cat a", "bad_value"),
        ("timeout 5 ./cat", "unknown_command"),
        ("timeout 5 bash -c id", "unknown_command"),
        ("timeout 5 -- cat", "unknown_command"),
        ("timeout 5 A=1 cat", "unknown_command"),
        ("timeout 5 env A=1 cat", "unknown_command"),
        ("timeout 5 cat --unheard-of", "unknown_flag"),
        ("timeout 5 git a", "bad_value"),
        ("timeout 5 env git a", "bad_value"),
        ("uv run git a", "bad_value"),
        ("uv run fetch x", "bad_value"),
        ("xargs rm", "bad_value"),
        ("xargs env rm", "bad_value"),
        ("xargs", "missing_argument"),
        ("timeout 5 " * 6 + "cat a", "bad_value"),
        ("timeout 5 " * 1000 + "cat a", "bad_value"),
    ],
)
def test_what_a_wrapper_does_not_know_is_refused(line: str, kind: str) -> None:
    assert refused(*line.split()) == kind


def test_many_in_front_are_taken_away_one_by_one() -> None:
    assert read(*["env"] * 5000).argv == ("/usr/bin/env",)


def test_variables_are_those_of_the_command_that_runs() -> None:
    parsed = read("env", "PAGER=less -R", "CI=1", "cat", "a", NO_COLOR="1")
    assert parsed.environment == {"PAGER": "less -R", "CI": "1", "NO_COLOR": "1"}
    assert refused("env", "PAGER=x", "cp", "a", "b") == "environment"
    assert read("timeout", "5", "cat", "a", PAGER="x").environment == {"PAGER": "x"}


@pytest.mark.parametrize("value", ["../x", "a b", "$(id)", "x;y", "a\nb", "~", "x" * 201])
def test_a_plain_variable_has_a_plain_value(value: str) -> None:
    assert refused("cp", "a", "b", CI=value) == "environment"


def unknown(line: str) -> Parsed:
    return read_argv(TABLE, line.split(), home="/")


def test_an_unknown_line_is_asked_about_without_what_is_in_front() -> None:
    parsed = unknown("env A=1 time cat --unheard-of")
    assert (parsed.command, parsed.argv) == ("cat", ("/usr/bin/cat", "--unheard-of"))
    assert (parsed.environment, parsed.word, bool(parsed.unknown)) == ({"A": "1"}, Word.ASK, True)
    assert unknown("env -i cat a").argv == ("/usr/bin/env", "-i", "cat", "a")


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("env LD_PRELOAD=./x.so cat --unheard-of", "environment_fixed"),
        ("env PATH=. cat a", "environment_fixed"),
        ("time env GIT_SSH_COMMAND=id git push", "environment_fixed"),
        ("env rm --unheard-of", "denied"),
        ("never cat --unheard-of", "denied"),
        ("timeout 5 rm --unheard-of", "denied"),
        ("xargs rm", "denied"),
        ("time no-such-program", "not_installed"),
        ("env A=1 ./no-such-program", "not_installed"),
    ],
)
def test_nobody_is_asked_about_what_stays_refused(line: str, kind: str) -> None:
    with pytest.raises(ArgvRefused) as caught:
        unknown(line)
    assert caught.value.kind == kind


def test_a_program_of_the_workspace_gets_no_network_unasked_behind_another(tmp_path: Path) -> None:
    own = tmp_path / "fetch"
    own.touch(0o755)
    commands = {**TABLE, "fetch": replace(FETCH, word=Word.ALLOW, executable=str(own))}
    for roots, word in (((str(tmp_path),), Word.ASK), ((), Word.ALLOW)):
        table = CommandTable(commands, roots=roots)
        for front in ([], ["timeout", "5"], ["timeout", "5", "env"], ["env"]):
            assert read_argv(table, [*front, "fetch", "x"], home="/").word is word


def test_the_commands_inside_are_named() -> None:
    assert read("timeout", "5", "cat", "a").programs == ("/usr/bin/cat",)
    assert read("timeout", "5", "timeout", "5", "cat", "a").runs == ("timeout", "cat")


BLACK = command(
    "black",
    word=Word.ASK,
    writes=True,
    flags=(
        Flag(names=("--check",), calms=True),
        Flag(names=("--code",), word=Word.ASK, reason="code"),
        Flag(names=("--out",), writes=True),
    ),
    positionals=(Positional(name="path", value=Value(kind="path", excludes=r"\.\.|^-"), maximum=None),),
)
NPX = command(
    "npx",
    word=Word.ASK,
    network=True,
    writes=True,
    interspersed=False,
    flags=(Flag(names=("-p",), value=Value(), word=Word.ASK),),
    subcommands=(Command(name="tsc", calms=True),),
    positionals=(Positional(name="package", minimum=1),),
)


@pytest.mark.parametrize(
    ("line", "word", "writes", "network"),
    [
        ("black a", Word.ASK, True, False),
        ("black --check a", Word.ALLOW, False, False),
        ("black a --check", Word.ALLOW, False, False),
        ("black --check --code a", Word.ASK, False, False),
        ("black --out --check a", Word.ALLOW, True, False),
        ("npx x", Word.ASK, True, True),
        ("npx tsc", Word.ALLOW, False, False),
        ("npx -p x tsc", Word.ASK, False, False),
    ],
)
def test_what_calms_takes_back_only_what_the_command_itself_says(
    line: str, word: Word, writes: bool, network: bool
) -> None:
    parsed = parse({"black": BLACK, "npx": NPX}, line.split())
    assert (parsed.word, parsed.writes, parsed.network) == (word, writes, network)


def test_nothing_calms_a_denial() -> None:
    table = {each.name: replace(each, word=Word.DENY) for each in (BLACK, NPX)}
    for line in ("black --check a", "npx tsc"):
        assert parse(table, line.split()).word is Word.DENY


def test_a_value_holds_nothing_that_is_excluded() -> None:
    for path in ("../x", "a/../b"):
        with pytest.raises(ArgvRefused) as caught:
            parse({"black": BLACK}, ["black", path])
        assert caught.value.kind == "bad_value"


def test_a_wrapper_has_its_flags_first_and_no_subcommands() -> None:
    for wrong in ({"interspersed": True}, {"subcommands": (CAT,), "interspersed": False}):
        with pytest.raises(DefinitionError):
            command("x", runs="command", **wrong)
    with pytest.raises(DefinitionError):
        Value(excludes="(")


FIND = command(
    "find",
    combined=False,
    flags=(Flag(names=("-exec",), executes=("cat", "cp")), Flag(names=("-delete",), word=Word.ASK)),
    positionals=(PATHS,),
)


def test_what_find_executes_is_judged_by_its_own_grammar() -> None:
    table = TABLE | {"find": FIND}
    found = parse(table, ["find", "src", "-exec", "cat", "notes.txt", "{}", "+", "-delete"])
    assert found.argv == ("/usr/bin/find", "src", "-exec", "/usr/bin/cat", "notes.txt", "{}", "+", "-delete")
    assert (found.word, found.runs, found.programs) == (Word.ASK, ("cat",), ("/usr/bin/cat",))
    assert [use.path for use in found.paths] == ["notes.txt", "{}", "src"]
    assert parse(table, ["find", "-exec", "cp", "a", "+", ";"]).writes  # a `+` without `{}` is a word


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (["-exec", "rm", "{}", ";"], "bad_value"),
        (["-exec", "sh", "-c", "id", ";"], "bad_value"),
        (["-exec", "cat", "{}"], "missing_value"),
        (["-exec", ";"], "missing_value"),
        (["-exec", "cat", "--odd", "{}", ";"], "unknown_flag"),
        (["-exec", "{}", ";"], "bad_value"),
    ],
)
def test_find_executes_nothing_else(words: list[str], kind: str) -> None:
    with pytest.raises(ArgvRefused) as refused:
        parse(TABLE | {"find": FIND}, ["find", *words])
    assert refused.value.kind == kind


def test_a_flag_never_executes_git() -> None:
    with pytest.raises(DefinitionError, match="Git is none of them"):
        Flag(names=("-exec",), executes=("git",))


def test_a_wrapper_around_a_program_that_is_nowhere_says_so() -> None:
    with pytest.raises(ArgvRefused, match="'no-such-program' is not installed") as refused:
        read_argv(TABLE, ["timeout", "5", "no-such-program", "x"], home="/")
    assert refused.value.kind == "not_installed"
