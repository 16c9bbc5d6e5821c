"""Patterns of shell lines: what they stand for is what bash makes of them, and never a look outside the workspace."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolgate.guards import expansion
from toolgate.guards.expansion import expander
from toolgate.guards.files import Workspace
from toolgate.guards.line import read_line
from toolgate.guards.shell import Unsplittable, split

NAMES = ("a.py", "b.py", "B.py", "a b.txt", ".hidden", "é.md", "x1", "x2", "[z]", "sub/c.py", "sub/.d", "sub/deep/e.py")
BASH = shutil.which("bash")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    top = tmp_path_factory.mktemp("patterns") / "root"
    for name in NAMES:
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text("")
    return Workspace(top)


def expanded(workspace: Workspace, text: str, here: str | None = None) -> list[str]:
    """Return the words of a command after its name."""
    (step,) = split(f"x {text}")
    (command,) = step.commands
    patterns = dict(command.patterns)
    found: list[str] = []
    for number, word in enumerate(command.words[1:], 1):
        found += expander(workspace)(patterns[number], here or workspace.path) if number in patterns else [word]
    return found


def told(workspace: Workspace, text: str) -> list[str]:
    """Return the same by bash itself."""
    assert BASH is not None
    environment = {"LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]}
    script = f"shopt -u patsub_replacement 2>/dev/null; printf '%s\\0' x {text}"
    done = subprocess.run([BASH, "-c", script], cwd=workspace.path, env=environment, capture_output=True, check=True)
    return done.stdout.decode(errors="surrogateescape").split("\0")[1:-1]


@pytest.mark.parametrize(
    "text",
    ["*", "*.py", "?.py", "[ab].py", "[!a].py", "[a-b]*", "*/", "*/*", "*/*.py", "./*.py", "sub/*",
     "sub/.*d", ".h*", "nope*", "'*'.py", "\"a\"*", "a\\ b*", "a*b.txt", "{a,b}.py", "{a,nope}.py",
     "x{1,2}", "x{1,}", "{a,b}*", "*.{py,md}", "\\[z*", "**/*.py", "sub//*.py", "sub/*/e.py", "*b/c.py",
     "é*", "--x=*.py", "[", "]", "a[", "{}", "{a}", "x[12]", "sub/c*/", "'a b'* *.md", "a,b", "[]x]1",
     "[x-]1"],
)  # fmt: skip
def test_a_pattern_stands_for_what_bash_makes_of_it(workspace: Workspace, text: str) -> None:
    if BASH is None:  # pragma: no cover - every machine of ours has it
        pytest.fail("bash is needed to compare with")
    assert expanded(workspace, text) == told(workspace, text)


PIECES = st.sampled_from(
    [
        "a",
        "x",
        "*",
        "?",
        ".py",
        "[ab]",
        "[!x]",
        "[0-9]",
        "sub",
        "/",
        ".",
        "{a,b}",
        "{,1}",
        "'*'",
        '"?"',
        "\\[",
        "]",
        "1",
    ]
)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(parts=st.lists(PIECES, min_size=1, max_size=6))
def test_any_pattern_that_is_expanded_means_the_same_to_bash(parts: list[str], workspace: Workspace) -> None:
    text = "".join(parts)
    if text.startswith("/") or ".." in text:
        return  # what is outside is another machine's matter
    try:
        found = expanded(workspace, text)
    except Unsplittable:
        return
    assert found == told(workspace, text)


@pytest.mark.parametrize(
    "text", ["/etc/*", "../*", "sub/../../*", "/*", "[[:alpha:]]*", "[a-Z]*", "{a,{b,c}}", "{1..3}"]
)
def test_what_is_outside_or_hangs_on_the_language_is_not_expanded(workspace: Workspace, text: str) -> None:
    with pytest.raises(Unsplittable):
        expanded(workspace, text)


def test_links_that_lead_out_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.py").write_text("")
    root = tmp_path / "root"
    root.mkdir()
    (root / "in.py").write_text("")
    (root / "out").symlink_to("../outside")
    (root / "id_rsa").write_text("")
    (root / ".ssh").mkdir()
    (root / ".ssh" / "key.py").write_text("")
    space = Workspace(root)
    assert expanded(space, "*/*.py") == ["*/*.py"]
    with pytest.raises(Unsplittable, match="outside the workspace"):
        expanded(space, "out/*")
    assert expanded(space, "*") == ["in.py"]  # not the key, and not what leads out
    assert expanded(space, "id*") == ["id_rsa"]  # named on purpose: the policy judges it
    assert expanded(space, ".ssh/*") == [".ssh/*"]  # and its names are told to nobody


def test_names_that_would_be_flags_or_cannot_be_read_are_not_words(tmp_path: Path) -> None:
    (tmp_path / "-rf").write_text("")
    with pytest.raises(Unsplittable, match="like a flag"):
        expanded(Workspace(tmp_path), "*")
    (tmp_path / "-rf").rename(tmp_path / "a\nb")
    with pytest.raises(Unsplittable, match="odd characters"):
        expanded(Workspace(tmp_path), "*")


def test_a_pattern_stands_for_a_bounded_number_of_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(12):
        (tmp_path / f"f{number}").write_text("")
    monkeypatch.setattr(expansion, "MAX_MATCHES", 10)
    for text in ("*", "{a,b,c,d}{1,2,3}", "f{1,2}*"):
        if text != "f{1,2}*":
            with pytest.raises(Unsplittable, match="more than 10"):
                expanded(Workspace(tmp_path), text)
    assert len(expanded(Workspace(tmp_path), "f{1,2}*")) == 4
    monkeypatch.setattr(expansion, "MAX_SEEN", 5)
    with pytest.raises(Unsplittable, match="more than 5 names"):
        expanded(Workspace(tmp_path), "f1*")


def test_a_pattern_is_read_where_its_command_starts_and_only_before_anything_writes(workspace: Workspace) -> None:
    def words(text: str) -> list[tuple[str, ...]]:
        line = read_line({}, text, {}, workspace.path, workspace)
        return [part.command.argv[1:] for step in line.steps for part in step.parts]

    assert words("cd sub && ls *.py") == [("c.py",)]
    # An unknown command may write: what `*` stands for then is not known now.
    assert words("ls a.py && ls *.py")[0][0] == "-c"
    line = read_line({}, "ls *.py", {}, workspace.path, None)
    assert "pattern" in line.judged[0].unknown
