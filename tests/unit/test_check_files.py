"""What is checked of files and names before a commit."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
CHECKS: dict[str, Any] = runpy.run_path(str(ROOT / "tools" / "check_files.py"))


def source(root: Path, name: str, text: str) -> None:
    path = root / "src" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_the_project_holds_its_own_rules() -> None:
    assert [*CHECKS["complaints"](ROOT), *CHECKS["shared_names"](ROOT), *CHECKS["unmerged"](ROOT)] == []


def test_a_common_word_names_one_class(tmp_path: Path) -> None:
    source(tmp_path, "a/one.py", "class Entry:\n    pass\n\n\nclass EntryList:\n    pass\n")
    source(tmp_path, "b/two.py", "from a.one import Entry\n\n\nclass Job:\n    pass\n")
    assert list(CHECKS["shared_names"](tmp_path)) == []
    source(tmp_path, "b/three.py", "class Entry(tuple):\n    pass\n")
    [said] = CHECKS["shared_names"](tmp_path)
    assert said.startswith("src/a/one.py, src/b/three.py: each has a class `Entry`")


def test_long_files_and_vague_names_are_refused(tmp_path: Path) -> None:
    source(tmp_path, "helpers.py", "")
    source(tmp_path, "long.py", "x = 1\n" * (CHECKS["LONGEST"] + 1))
    vague, long = CHECKS["complaints"](tmp_path)
    assert "`helpers` hides" in vague
    assert "501 lines" in long
