"""Both tutorials followed by hand: a copy of the checkout, the install lines as printed, real processes and a keyboard.

The steps a reader takes beside the printed blocks (which keys, which process is killed) are those the prose tells.
"""

from __future__ import annotations

import os
import pty
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest
from tests.docs.pages import PRINTS, ROOT, SHELLS, Block, blocks
from tests.docs.reader import PATIENCE_S, Terminal, the_port
from tests.real.environments import LEFT_OUT

from toolgate.testing.patience import until_sync

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]
TUTORIALS = ROOT / "docs" / "tutorials"
NOT_COPIED = shutil.ignore_patterns(".*", "__pycache__", "benchmarks", "htmlcov", "coverage.json")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the tree in a folder of its own, as a reader has it who just got it."""
    return shutil.copytree(ROOT, tmp_path / "toolgate", ignore=NOT_COPIED)


@pytest.fixture
def plain() -> dict[str, str]:
    """The variables of a new terminal: nothing of the environment the tests run in."""
    kept = {name: value for name, value in os.environ.items() if not LEFT_OUT.match(name)}
    kept["PATH"] = os.pathsep.join(part for part in kept["PATH"].split(os.pathsep) if not part.startswith(str(ROOT)))
    return kept


def steps(page: Path) -> Iterator[Block]:
    """The blocks of a page that a reader does something with."""
    return (block for block in blocks(page) if block.language in ("python", *SHELLS) or block.mark == PRINTS)


def test_the_first_governed_call(checkout: Path, plain: dict[str, str]) -> None:
    said = ""
    with Terminal(checkout, plain, checkout.parent / "terminal.log") as terminal:
        for block in steps(TUTORIALS / "first-governed-call.md"):
            if block.mark == PRINTS:
                assert said.strip() == block.code.strip()
            elif block.language == "python":
                (checkout.parent / "first-call" / str(block.file)).write_text(block.code + "\n", encoding="utf-8")
                said = terminal.run(f"python {block.file}")
            else:
                said = terminal.run(block.code)


@contextmanager
def keyboard(command: str, folder: Path, told: dict[str, str]) -> Iterator[Callable[[str, str], None]]:
    """A program on a screen. `press(seen, keys)` waits until something is on it, then presses keys."""
    leader, follower = pty.openpty()
    os.set_blocking(leader, False)
    program = subprocess.Popen(
        ["bash", "-ec", command],
        cwd=folder,
        env={**told, "TERM": "xterm", "COLUMNS": "120", "LINES": "40"},
        stdin=follower,
        stdout=follower,
        stderr=follower,
        start_new_session=True,
    )
    os.close(follower)
    screen = bytearray()

    def look(seen: str) -> bool:
        try:
            screen.extend(os.read(leader, 1 << 16))
        except BlockingIOError:
            pass
        except OSError:  # the program has ended
            assert re.search(seen.encode(), screen), f"{seen!r} is not on the screen:\n{screen.decode()}"
        return re.search(seen.encode(), screen) is not None

    def press(seen: str, keys: str) -> None:
        until_sync(lambda: look(seen), within_s=PATIENCE_S)
        screen.clear()
        os.write(leader, keys.encode())

    try:
        yield press
        until_sync(lambda: look("$") and program.poll() is not None, within_s=PATIENCE_S)
    finally:
        program.kill()
        program.wait()
        os.close(leader)


def answer_both(press: Callable[[str, str], None]) -> None:
    """Yes to the first question, no to the second, as step 5 tells."""
    press("Inbox: 2 waiting", "\r")
    press("a approve", "a")
    press("Reason", "\r")
    press("Inbox: 1 waiting", "\r")
    press("a approve", "d")
    press("Reason", "I still need it\r")
    press("Nothing waits", "q")


def answer_yes(press: Callable[[str, str], None]) -> None:
    press("Inbox: 1 waiting", "\r")
    press("a approve", "a")
    press("Reason", "\r")
    press("Nothing waits", "q")


def kill_the_server(terminal: Terminal) -> None:
    """What `kill -9` does to the server that was started in a terminal."""
    [server] = [child for child in psutil.Process(terminal.pid).children() if "serve" in child.cmdline()]
    server.send_signal(signal.SIGKILL)
    server.wait(PATIENCE_S)


def files_in(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_the_agent_that_asks(checkout: Path, plain: dict[str, str]) -> None:
    page = TUTORIALS / "agent-that-asks.md"
    logs, demo = checkout.parent, checkout.parent / "agent-demo"
    told = {**plain, "HOME": str(logs)}
    typed = [block.code for block in blocks(page) if block.language == "bash"]
    install, init, tokens, serve, runner, read, clean, inbox, again, restart, model = typed
    first, questions, refused, done = (block.code.strip() for block in blocks(page) if block.language == "text")

    with the_port(), ExitStack() as open_terminals:
        gate = open_terminals.enter_context(Terminal(checkout, told, logs / "gate.log"))
        for text in (install, init, tokens):
            gate.run(text)
        [talk] = [block for block in blocks(page) if block.file == "talk.py"]
        (demo / "talk.py").write_text(talk.code + "\n", encoding="utf-8")
        gate.type(f"set +e\n{serve}")  # a person's shell outlives a server that is killed
        gate.wait_for("Serving on http://127.0.0.1:8642")

        machine = open_terminals.enter_context(Terminal(demo, told, logs / "machine.log"))
        machine.type(runner)
        machine.wait_for("connected to http://127.0.0.1:8642")

        person = open_terminals.enter_context(Terminal(demo, told, logs / "person.log"))
        assert person.run(read).strip() == first

        person.type(clean)
        person.wait_for(re.escape(questions))
        with keyboard(inbox, demo, told) as press:
            answer_both(press)
        person.wait_for(re.escape(refused))
        assert files_in(demo / "shop" / "build") == ["keep.txt", "old.tmp"]

        person.type(again)
        person.wait_for(r"\? execute_command .*build/old\.tmp")
        kill_the_server(gate)
        gate.type(restart)
        gate.wait_for("Serving on http://127.0.0.1:8642")
        with keyboard(inbox, demo, told) as press:
            answer_yes(press)
        person.wait_for(re.escape(done))
        assert files_in(demo / "shop" / "build") == ["keep.txt"]

        kill_the_server(gate)
        gate.type(model)
        gate.wait_for("Serving on http://127.0.0.1:8642")
