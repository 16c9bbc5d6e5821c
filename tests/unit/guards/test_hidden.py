"""What commands must not see is found by every name it has."""

from __future__ import annotations

import os
from pathlib import Path

from toolgate.guards.edges import Edges
from toolgate.guards.files import Workspace
from toolgate.guards.hidden import hidden_in


def test_other_names_of_a_hidden_file_are_hidden_too(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / ".env").write_text("TOKEN=x")
    (tmp_path / "a.txt").write_text("x")
    os.link(tmp_path / ".env", tmp_path / "src" / "innocent.txt")
    os.link(tmp_path / "a.txt", tmp_path / "b.txt")
    (tmp_path / ".ssh").mkdir()
    os.link(tmp_path / ".env", tmp_path / ".ssh" / "copy")  # hidden with its directory
    with Workspace(str(tmp_path)) as workspace:
        found = hidden_in(Edges(workspace=workspace))
    assert sorted(found) == [str(tmp_path / name) for name in (".env", ".ssh", "src/innocent.txt")]
