"""Shell lines: what they are split into is what bash and dash make of them; the rest is not split at all."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolgate.guards.shell import MAX_CHARACTERS, Redirect, Simple, Step, Unsplittable, split

SHELLS = [found for name in ("bash", "dash") if (found := shutil.which(name)) is not None]
TELL = "import json,os,sys; print(json.dumps([os.environ.get('V'), sys.argv[1:]]))"


def words(text: str) -> list[list[str]]:
    return [list(command.words) for step in split(text) for command in step.commands]


def test_a_line_of_coding_agents_is_taken_apart() -> None:
    found = split("cd src && V=1 pytest -q 2>&1 | tail -5 > out.txt; git diff || true")
    assert [step.connector for step in found] == [";", "&&", ";", "||"]
    assert found[0] == Step(connector=";", commands=(Simple(words=("cd", "src")),))
    first, second = found[1].commands
    same = Redirect(descriptor=2, kind="same", target="1")
    assert first == Simple(words=("pytest", "-q"), variables=(("V", "1"),), redirects=(same,))
    assert second.redirects == (Redirect(descriptor=1, kind="write", target="out.txt"),)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a>/dev/null", [(1, "write", "/dev/null")]),
        ("a 2>/dev/null", [(2, "write", "/dev/null")]),
        ("a 2 >x", [(1, "write", "x")]),
        ("a>>'x y'", [(1, "append", "x y")]),
        ("a <in >out", [(0, "read", "in"), (1, "write", "out")]),
        ("a &>x", [(1, "write", "x"), (2, "same", "1")]),
        ("a >&2", [(1, "same", "2")]),
        ("<in a", [(0, "read", "in")]),
    ],
)
def test_redirections_keep_their_order(text: str, found: list[tuple[int, str, str]]) -> None:
    (step,) = split(text)
    assert [(one.descriptor, one.kind, one.target) for one in step.commands[0].redirects] == found


@pytest.mark.parametrize(
    "text",
    [
        "", " ", ";", "a &&", "a | | b", "| a", "a;;b", "a &", "a & b", "a |& b", "&& a", "a\n&& b",
        "echo $HOME", 'echo "$HOME"', "echo `id`", 'echo "`id`"', "echo $(id)", "a <(b)", "a >(b)", "echo $'x'",
        "*", "a*b c", "A=* b", "a > *", "ls {a,{b,c}}", "ls {a,b", "ls {a'b',c}",
        "ls ~", "ls ~/x", "A=~/x b", "a --x=~/y", "ls {1..3}", "{ a; }", "(a)",
        "if a; then b; fi", "for x in y; do z; done", "while a; do b; done", "f() { a; }", "! a", "[[ a ]]",
            "time ! a", "time cd a", "time { a; }", "time export A=1",
        "a << E", "a <<< x", "a <> x", "a >| x", "a >&x", "a >&-", "a 3>x", "a <&0", "a {n}>x", "a > $x", "a >", "> x",
        "a '", 'a "', "a \\", "a # b", "#a", "A=1", "A+=1 b", "export A=1", "eval a", "source x", ". x", "exec a",
        "a\rb", "a\x00b", "'\x00'", "a\u00a0b", "a\x0bb", "\ud800", "alias a=b", "a >x>>", "a 1>2>3 b 3>c",
        "a;" * 101, "x" * (MAX_CHARACTERS + 1),
    ],
)  # fmt: skip
def test_what_only_a_shell_could_run_is_not_split(text: str) -> None:
    with pytest.raises(Unsplittable):
        split(text)


LINES = [
    "x a b", "x 'a b' \"c d\" e\\ f", "x ''", 'x ""', "x a''b", "x \"a\\\"b\\\\c\\d\"", "x 'a\\b'", "x a\\\nb",
    "x \\\n b", 'x "a\\\nb"', "x 'a\nb'", "x a=b", "x -- -x", "x HEAD~1 HEAD@{1} {} a{b}c", "x \\$HOME '$HOME' '*' \\*",
    "x a#b 'é' ü",
    "V=1 x a", "V='a b'c x", "V= x", "V=1 V=2 x", "'V'=1 && x", "x V=1", "x 1 2>/dev/null", "x '2'>/dev/null a",
    "x a\\;b 'a&&b'", "x ]", "x !", "x if then", "x a:b", "x %s ^ , @ +", "x a\tb", "x \\a\\'b",
    'x "it\'s" \'say "x"\'',
]  # fmt: skip


@pytest.fixture(scope="module")
def teller(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bin") / "x"
    path.write_text(f"#!{sys.executable} -IS\n{TELL}\n")
    path.chmod(0o755)
    return path


def told(shell: str, text: str, teller: Path) -> list[object] | None:
    """Return what the program `x` was given by a real shell, each time it ran."""
    ran = subprocess.run(
        [shell, "-c", text], env={"PATH": str(teller.parent), "LANG": "C.UTF-8"}, cwd=teller.parent, capture_output=True
    )
    lines = ran.stdout.decode(errors="surrogateescape").splitlines()
    return [json.loads(line) for line in lines]


def ours(text: str) -> list[object]:
    """Return the same by our own reading, for lines whose commands are all `x`, and that have no patterns."""
    if any(command.patterns for step in split(text) for command in step.commands):
        raise Unsplittable("a pattern")
    return [
        [dict(command.variables).get("V"), list(command.words[1:])]
        for step in split(text)
        for command in step.commands
        if command.words[0] == "x" and not any(one.descriptor == 1 for one in command.redirects)
    ]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("text", [line for line in LINES if "&&" not in line or "'a&&b'" in line])
def test_words_are_what_real_shells_make_of_them(shell: str, text: str, teller: Path) -> None:
    assert told(shell, text, teller) == ours(text)


@pytest.mark.parametrize(
    ("text", "pattern"),
    [("ls *.py", "*.py"), ("ls 'a'*", "\\a*"), ("ls [a]", "[a]"), ("ls {a,b}", "{a,b}"), ("ls a?\\*", "a?\\*")],
)
def test_patterns_are_told_apart_with_what_was_quoted_in_them(text: str, pattern: str) -> None:
    (step,) = split(text)
    assert step.commands[0].patterns == ((1, pattern),)


def test_looking_for_a_program_is_understood_and_nothing_else_that_command_does() -> None:
    assert words("command -v uv || echo none") == [["which", "uv"], ["echo", "none"]]
    for text in ("command ls", "command -v", "command -V ls", "command -v -p ls"):
        with pytest.raises(Unsplittable, match="changes the shell itself"):
            split(text)


PIECES = st.sampled_from(
    ["a", "b c", "'", '"', "\\", " ", "\t", "\n", "=", "V=", "#", "{", "}", ",", "..", "~", "-", "!", "x", "2", "1",
     "$", "*", ":", "@", "'a b'", '"q"', "\\ ", "é", "%", "+", "^", "]", "V", "/dev/null", "0"]
)  # fmt: skip


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(parts=st.lists(PIECES, max_size=8))
def test_any_line_that_is_split_means_the_same_to_real_shells(parts: list[str], teller: Path) -> None:
    text = "x " + "".join(parts)
    try:
        found = ours(text)
        commands = [command.words[0] for step in split(text) for command in step.commands]
    except Unsplittable:
        return
    if set(commands) != {"x"}:
        return  # another program does not exist there
    for shell in SHELLS:
        assert told(shell, text, teller) == found


@given(text=st.text(max_size=200))
def test_any_text_is_split_or_refused(text: str) -> None:
    try:
        found = split(text)
    except Unsplittable:
        return
    assert all(command.words for step in found for command in step.commands)


def test_long_lines_take_linear_time() -> None:
    assert len(words("x " + "'a' " * 8000)[0]) == 8001
