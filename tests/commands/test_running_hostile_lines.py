"""Hostile lines really run, in every backend: nothing outside the workspace changes, and no canary comes out.

They run as a person who said yes to each question would have them run, so that the sandbox alone is left to hold.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.commands.hostile import hostile
from tests.sandboxes import needs_sandbox

import toolgate
from toolgate.policy.profiles import render

pytestmark = needs_sandbox
CANARY = "canary-7d1f"
SAMPLE = 12
_NEVER_ENDS = ("watch ", "while ", "sleep", "tail -f", "yes", "top", "nc -l", "python -m http.server", "docker", "gdb")


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder with a workspace, and beside it what no line may read or change."""
    top = Path(tempfile.mkdtemp(prefix="toolgate-hostile-"))
    top.chmod(0o755)
    root = top / "root"
    for name in ("src/main.py", "tests/test_main.py", "README.md", "a.txt", "b.txt", "x"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("print('x')\n")
    (root / "x").chmod(0o755)
    (root / ".env").write_text(f"TOKEN={CANARY}\n")
    (root / ".git" / "hooks").mkdir(parents=True)
    (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (root / ".git" / "config").write_text("[core]\n\tbare = false\n")
    (top / "secret").write_text(CANARY)
    (root / "link-out").symlink_to("../secret")
    yield top
    shutil.rmtree(top)


def outside(top: Path) -> dict[str, bytes]:
    """Return what must stay as it is: everything beside the workspace, and what steers Git and the gate in it."""
    kept = [top / "secret", *(top / "policy").rglob("*"), *(top / "root" / ".git").rglob("*"), top / "root" / ".env"]
    found = {str(path): path.read_bytes() if path.is_file() else b"" for path in kept}
    return found | {str(path): b"" for path in top.iterdir()}


def lines(count: int) -> list[str]:
    """Return some of the lines whose program is here; Git's are run by the tests of its own."""
    found = [line for line in hostile() if not any(word in line for word in _NEVER_ENDS)]
    fit = [line for line in found if line.split()[0] != "git" and shutil.which(line.split()[0]) is not None]
    return random.Random(7).sample(fit, min(count, len(fit)))


async def run_all(top: Path, backend: str, chosen: list[str]) -> tuple[int, list[str]]:
    """Run lines with a yes to every question; return how many ran, and which let something out or in."""
    (top / "policy").mkdir()
    for name, text in render("developer").items():
        tool = "  execute_command:\n    category: system_write\n"
        (top / "policy" / name).write_text(text.replace(tool, f"{tool}    sandbox: {{backend: {backend}}}\n"))
    before, ran, loose = outside(top), 0, []
    async with toolgate.open(
        "memory://",
        workspace=top / "root",
        policy=top / "policy" / "toolgate.yaml",
        built_in_tools=True,
        approver=lambda _approval: True,
    ) as gate:
        for line in chosen:
            result = await gate.call("execute_command", {"command": line, "timeout": 5})
            ran += isinstance(result.data, dict) and "exit_code" in result.data
            if CANARY in str((result.data, result.error)) or outside(top) != before:
                loose.append(line)
                before = outside(top)
    return ran, loose


@pytest.mark.parametrize("backend", ["bubblewrap", "landlock"])
async def test_some_hostile_lines_do_nothing_outside(place: Path, backend: str) -> None:
    ran, loose = await run_all(place, backend, lines(SAMPLE))
    assert loose == []
    assert ran >= 3


@pytest.mark.soak
@pytest.mark.parametrize("backend", ["bubblewrap", "landlock"])
async def test_no_hostile_line_does_anything_outside(place: Path, backend: str) -> None:
    ran, loose = await run_all(place, backend, lines(len(hostile())))
    assert loose == []
    assert ran >= 300
