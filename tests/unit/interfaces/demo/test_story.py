from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest

import toolgate
from toolgate.agent.requests import understand
from toolgate.catalog.client import client_tools
from toolgate.errors import ToolExecutionError
from toolgate.interfaces.demo import janitor, story
from toolgate.interfaces.demo.checking import Failure
from toolgate.interfaces.demo.narrator import JsonLines, plain
from toolgate.interfaces.demo.post_office import PostOffice
from toolgate.interfaces.demo.tools import TOOLS
from toolgate.policy import load_policy
from toolgate.policy.explain import explain, question_of
from toolgate.policy.profiles import commands
from toolgate.testing.patience import PATIENCE_S


def test_the_policy_of_the_story_says_what_the_story_tells(tmp_path: Path) -> None:
    (tmp_path / "toolgate.yaml").write_text(story.policy(8000))
    (tmp_path / "toolgate.commands.yaml").write_text(commands("developer"))
    policy = load_policy(tmp_path, workspace=tmp_path)
    known = {tool.name: tool for tool in [*client_tools(), *TOOLS]}

    def word(tool: str, **arguments: Any) -> str:
        return explain(policy, question_of({"tool": tool, "arguments": arguments}, known)).ruling.word.value

    assert word("read_file", path=".env") == "deny"
    assert word("read_file", path="prices.py") == "allow"
    assert word("execute_command", command="python3", args=["-m", "unittest", "-q"]) == "allow"
    assert word("fetch_url", url="http://127.0.0.1:8000/") == "allow"
    assert word("fetch_url", url="http://127.0.0.1:8001/") == "deny"
    assert word("edit_file", path="prices.py", old_text="a", new_text="b") == "ask"
    assert word("delete_file", path="old/upload.tmp") == "ask"
    assert word("send_notices", **story.LETTER, recipients=story.CUSTOMERS) == "ask"


@pytest.mark.parametrize("sandbox", [True, False])
def test_the_agent_understands_every_line(sandbox: bool) -> None:
    asked = [
        *story.look_around("http://127.0.0.1:1/", sandbox=sandbox),
        *story.release(),
        *story.check(sandbox=sandbox),
    ]
    assert [line for line in asked if understand(line) is None] == []


def test_without_a_sandbox_nothing_is_run_or_fetched() -> None:
    asked = [*story.look_around("http://127.0.0.1:1/", sandbox=False), *story.check(sandbox=False)]
    assert {understand(line).kind for line in asked} == {"read"}  # type: ignore[union-attr]  # understood, see above


def test_the_test_of_the_shop_fails_and_the_repair_mends_it(tmp_path: Path) -> None:
    for name in ("prices.py", "test_prices.py"):
        (tmp_path / name).write_text(story.FILES[name])
    command = [sys.executable, "-m", "unittest", "-q"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 1
    (tmp_path / "prices.py").write_text(story.FILES["prices.py"].replace(story.BROKEN, story.REPAIRED))
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 0


def test_letters_end_at_the_post_office(monkeypatch: pytest.MonkeyPatch) -> None:
    sender = next(tool for tool in TOOLS if tool.name == "send_notices")
    given = toolgate.ToolInput(payload={**story.LETTER, "recipients": story.PILOT})
    with PostOffice() as office:
        monkeypatch.setenv(story.CATCHER, office.url)
        assert sender.handler(given).data == {"sent": 3}  # type: ignore[misc]  # it has one
        assert [letter["to"] for letter in office.letters] == story.PILOT
        assert "Release checklist" in httpx2.get(office.url).text
        given.payload["text"] = "x" * 70_000
        with pytest.raises(ToolExecutionError, match="413"):
            sender.handler(given)  # type: ignore[misc]  # it has one


def test_what_others_say_cannot_steer_the_terminal() -> None:
    assert "\x1b" not in plain("\x1b[2J gone\n")


def test_json_is_one_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    narrator = JsonLines()
    narrator.chapter(1, "a")
    narrator.step("edit_file x", "undone", "")
    narrator.end("b", failed=[], verified=3)
    narrator.end("c", failed=[Failure(step="fetch_url", why="failed: gone")])
    assert capsys.readouterr().out.splitlines() == [
        '{"event":"chapter","number":1,"title":"a"}',
        '{"event":"undo","what":"edit_file x","step":"undone","reason":""}',
        '{"event":"end","ok":true,"text":"b","failed":[],"verified":3}',
        '{"event":"end","ok":false,"text":"c","failed":[{"step":"fetch_url","why":"failed: gone"}]}',
    ]


def test_the_janitor_ends_what_it_was_told_of_and_removes_its_folder(tmp_path: Path) -> None:
    folder, other = tmp_path / f"{janitor.PREFIX}x", tmp_path / "precious"
    for one in (folder, other):
        one.mkdir()
    stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(60)"
    with (
        subprocess.Popen([sys.executable, "-c", stubborn], stdout=subprocess.PIPE) as child,
        subprocess.Popen([sys.executable, "-c", ""]) as gone,
    ):
        assert child.stdout is not None
        child.stdout.readline()
        gone.wait()
        said = f"folder {folder}\nfolder {other}\npid {child.pid}\npid {gone.pid}\nnonsense\n"
        subprocess.run([sys.executable, janitor.__file__], input=said, text=True, check=True, timeout=PATIENCE_S)
        assert child.wait(PATIENCE_S) == -9
    assert (folder.exists(), other.exists()) == (False, True)
