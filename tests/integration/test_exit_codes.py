"""Every exit code of the reference, from a command in a process of its own: scripts rely on them."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.pages import read
from tests.integration.programs import cli
from tests.unit.interfaces.at_a_terminal import Seat

from toolgate.interfaces.cli.app import EXIT_CODES

TESTED = {0, 1, 2, 130, 143}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a database and a policy, made by the command once."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        away_from_others(patch, folder)
        assert cli("init", "--database", "toolgate.db").code == 0
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, where the test is."""
    copy = tmp_path / "copy"
    shutil.copytree(made, copy)
    away_from_others(monkeypatch, copy)
    return copy


def away_from_others(patch: pytest.MonkeyPatch, folder: Path) -> None:
    patch.chdir(folder)
    for name in ("TOOLGATE_DATABASE", "TOOLGATE_SERVER", "TOOLGATE_KEY"):
        patch.delenv(name, raising=False)


def test_the_page_and_the_first_screen_have_the_codes_that_are_tested() -> None:
    table = re.findall(r"^\| (\d+) \|", read("docs/reference/cli.md"), re.MULTILINE)
    assert {int(code) for code in table} == TESTED
    assert {int(code) for code in re.findall(r"\d+", EXIT_CODES)} == TESTED


def test_0_is_done(folder: Path) -> None:
    assert cli("db", "status").code == 0
    assert cli("--help").code == 0


def test_1_is_an_error_of_one_line(folder: Path) -> None:
    ended = cli("db", "status", "none.db")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("toolgate: There is no database")
    assert ended.err.count("\n") == 1


def test_1_is_also_the_answer_no(folder: Path) -> None:
    (folder / "broken.yaml").write_text("version: 1\nnonsense: 2\n", encoding="utf-8")
    ended = cli("policy", "check", "broken.yaml")
    assert (ended.code, ended.err) == (1, "")
    assert "nonsense" in ended.out


def test_1_is_a_reader_that_went_away(folder: Path) -> None:
    program = [sys.executable, "-m", "toolgate", "--help"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait() == 1
        assert process.stderr is not None
        assert process.stderr.read() == b""


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["nonsense"],
        ["db"],
        ["db", "status", "--nonsense"],
        ["db", "prune"],
        ["db", "prune", "--older-than", "soon"],
        ["history", "--limit", "many"],
        ["init", "--profile", "wild"],
        ["inbox", "one.db", "--database", "two.db"],
        ["inbox", "--database", "one.db", "--server", "http://127.0.0.1:1"],
        ["inbox", "--server", "127.0.0.1"],
        ["inbox", "--server", "http://127.0.0.1:1", "--by", "ann"],
        ["demo", "--auto", "--terminal"],
    ],
    ids=lambda words: " ".join(words) or "nothing",
)
def test_2_is_wrong_usage_and_nothing_is_done(folder: Path, words: list[str]) -> None:
    before = sorted(folder.iterdir())
    ended = cli(*words)
    assert ended.code == 2
    assert "Usage: " in ended.err + ended.out
    assert sorted(folder.iterdir()) == before


def test_2_is_a_question_about_a_policy_that_cannot_be_answered(folder: Path) -> None:
    ended = cli("policy", "check", "none.yaml")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("toolgate: ")


async def test_130_is_ctrl_c(folder: Path) -> None:
    seat = Seat(["serve", "--port", "0"])
    await seat.sees("Serving on")
    assert await seat.stops(signal.SIGINT) == 130


async def test_143_is_sigterm_as_a_shell_tells_it(folder: Path) -> None:
    seat = Seat(["serve", "--port", "0"])
    await seat.sees("Serving on")
    assert await seat.stops(signal.SIGTERM) == -signal.SIGTERM
    assert 128 + signal.SIGTERM == 143


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_worker_that_was_told_to_end_is_done(folder: Path, number: signal.Signals) -> None:
    (folder / "far_tools.py").write_text(
        "import toolgate\n"
        "far = toolgate.ToolDefinition('far', {}, lambda _given: toolgate.ToolOutput.ok(), placement='worker')\n"
        "TOOLS = [far]\n",
        encoding="utf-8",
    )
    seat = Seat(["worker", "--tools", "far_tools:TOOLS", "--json"])
    await seat.sees("ready")
    assert await seat.stops(number) == 0
