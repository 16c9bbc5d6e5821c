"""The walkthrough of `run-the-server.md`, block by block as it is printed, in one shell."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.server_process import ROOT
from tests.postgres import free_port

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="curl, which the page uses, is not installed here")
PAGE = ROOT / "docs" / "how-to" / "run-the-server.md"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the walkthrough was walked; what it printed is in `out`."""
    folder, port = tmp_path_factory.mktemp("walk"), str(free_port())
    text = PAGE.read_text(encoding="utf-8").partition("## Tools of your own")[0]
    blocks = [block for block in re.findall(r"```bash\n(.*?)```", text, re.DOTALL) if "pip install" not in block]
    script = "set -eu\nset -m\ntrap 'kill %1 %2 || true' EXIT\n" + "echo\n".join(blocks) + "\necho\n"
    environment = {**os.environ, "TOOLGATE_PORT": port, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    with (folder / "out").open("w") as out, (folder / "err").open("w") as err:
        command = ["bash", "-c", script.replace("8642", port)]
        done = subprocess.run(command, cwd=folder, env=environment, stdout=out, stderr=err, timeout=120, check=False)
    assert done.returncode == 0, (folder / "err").read_text() + (folder / "out").read_text()
    return folder


def test_a_person_is_asked_before_the_call_runs_and_the_agent_gets_its_result(folder: Path) -> None:
    told = [json.loads(line) for line in (folder / "out").read_text().splitlines() if line.startswith("{")]
    asked, approved, reported, record = told
    assert (asked["status"], approved["status"], reported["status"]) == ("awaiting_approval", "approved", "completed")
    assert (record["tool_id"], record["status"], record["approved_by"]) == (asked["tool_id"], "completed", "ann")
    assert record["result"]["stdout"] == "Everything up-to-date"


def test_the_stream_shows_the_question_as_the_page_says_and_then_the_signal(folder: Path) -> None:
    stream = (folder / "demo" / "stream.txt").read_text()
    assert '"description":"Execute git push"' in stream
    assert stream.index("event: tool.approval_request") < stream.index("event: tool.execution_signal")
