"""Command lines without grammar: what is asked, what stays refused, and which names in them are judged."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from toolgate.guards.argv import Parsed
from toolgate.guards.grammar import Command, Flag, Limits, Positional, Value, pin
from toolgate.guards.unknown import names_in, read_argv
from toolgate.guards.words import ArgvRefused
from toolgate.kernel.policy import Word

PATHS = Positional(name="path", value=Value(kind="path"), maximum=None)
COMMANDS = {
    each.name: pin(each)
    for each in (
        Command(name="cat", positionals=(PATHS,), environment=("SHOWN",), limits=Limits(timeout_s=7)),
        Command(name="rm", word=Word.DENY, reason="it deletes"),
        Command(
            name="git",
            flags=(Flag(names=("-C",), value=Value(), word=Word.DENY),),
            subcommands=(
                Command(
                    name="push",
                    flags=(Flag(names=("-f", "--force"), word=Word.DENY, reason="it rewrites history"),),
                ),
                Command(name="gc", word=Word.DENY),
            ),
        ),
        Command(name="nowhere-to-be-found", positionals=(PATHS,)),
    )
}


def read(*argv: str, home: str = "/", **environment: str) -> Parsed:
    return read_argv(COMMANDS, argv, environment=environment, home=home)


@pytest.mark.parametrize(
    "argv",
    [
        ["ls", "-la"],
        ["cat", "--unheard-of", "x"],
        ["git", "unheard-of"],
        ["git", "push", "--unheard-of"],
        ["/usr/bin/ls"],
    ],
)
def test_what_no_grammar_knows_is_asked_about_and_has_no_network(argv: list[str]) -> None:
    found = read(*argv)
    assert (found.word, found.network, found.writes) == (Word.ASK, False, True)
    assert found.unknown in found.reasons
    assert os.path.isabs(found.executable)
    assert found.argv == (found.executable, *argv[1:])


def test_what_a_grammar_knows_is_read_by_it() -> None:
    found = read("cat", "x", SHOWN="1")
    assert (found.unknown, found.word, found.limits.timeout_s) == ("", Word.ALLOW, 7)


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["rm", "--unheard-of"], "'rm' is denied by the policy: it deletes."),
        (["/bin/rm", "x"], "'rm' is denied"),
        (["git", "gc", "--unheard-of"], "'git gc' is denied"),
        (["git", "--unheard-of", "gc"], "'git gc' is denied"),
        (["git", "push", "--unheard-of", "--force"], "'git push -f' is denied by the policy: it rewrites history."),
        (["git", "push", "--force=1", "--unheard-of"], "'git push -f' is denied"),
        (["git", "push", "-qfv"], "'git push -f' is denied"),
        (["git", "-C", "x", "unheard-of"], "'git -C' is denied"),
        (["nice", "rm", "x"], "'rm' is denied"),
        (["env", "-i", "git", "gc"], "'git gc' is denied"),
    ],
)
def test_an_explicit_denial_holds_whatever_else_stands_in_the_line(argv: list[str], told: str) -> None:
    with pytest.raises(ArgvRefused) as caught:
        read(*argv)
    assert caught.value.kind == "denied"
    assert told in str(caught.value)


def test_a_word_that_starts_no_program_may_be_called_like_a_denied_one() -> None:
    assert read("ls", "rm").unknown


@pytest.mark.parametrize("name", ["no-such-program", "nowhere-to-be-found", "./no-such-program", "-x", "a b", ""])
def test_a_program_that_is_not_there_is_no_question(name: str) -> None:
    with pytest.raises(ArgvRefused) as caught:
        read(name, "--unheard-of", home="/usr")
    assert caught.value.kind in ("not_installed", "not_pinned", "not_bare")


def test_a_program_of_the_workspace_is_one_more_path_to_judge(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    found = read("./run.sh", "x", home=str(tmp_path))
    assert found.executable == str(script)
    assert [use.path for use in found.paths] == ["./run.sh", "x"]
    assert [use.path for use in read("/usr/bin/ls", "x").paths] == ["x"]


@pytest.mark.parametrize(
    "name", ["LD_PRELOAD", "PATH", "GIT_SSH_COMMAND", "BASH_ENV", "HOME", "TOOLGATE_X", "1x", "A B"]
)
def test_variables_that_choose_code_are_never_set(name: str) -> None:
    with pytest.raises(ArgvRefused) as caught:
        read("cat", "x", **{name: "y"})
    assert caught.value.kind == "environment_fixed"


def test_other_variables_are_asked_about_and_their_paths_judged() -> None:
    found = read("cat", "x", CACHE="sub/.env")
    assert found.environment == {"CACHE": "sub/.env"}
    assert "sub/.env" in [use.path for use in found.paths]


@pytest.mark.parametrize(
    ("word", "name"),
    [
        (".env", ".env"),
        ("--file=.env", ".env"),
        ("-f.env", ".env"),
        ("@.env", ".env"),
        ("a:b/.env", "b/.env"),
        ("cat .env; ls", ".env"),
        ("open('secrets/key')", "secrets/key"),
        ("file:///etc/shadow", "/etc/shadow"),
        ("../x", "../x"),
    ],
)
def test_every_name_in_a_word_is_judged(word: str, name: str) -> None:
    assert name in names_in([word])


@pytest.mark.parametrize(
    "word", ["/usr/include", "/dev/null", "/no-such-directory/x", "https://example.com/", "--", "a\nb"]
)
def test_what_can_name_no_file_of_ours_is_left_alone(word: str) -> None:
    assert word not in names_in([word])


def test_a_line_with_too_many_names_is_refused() -> None:
    with pytest.raises(ArgvRefused, match="at most 2000"):
        names_in(f"x{number}" for number in range(2001))
