"""A command that may write cannot change what its own gate was read from, nor see its database."""

from __future__ import annotations

import os
from pathlib import Path

import toolgate
from toolgate.guards.edges import Edges
from toolgate.guards.hidden import kept_in


def test_a_gate_keeps_the_files_it_really_uses(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "rules.yml").write_text("version: 1\ninclude: [more/base.yml]\n")
    (tmp_path / "more/base.yml").write_text("version: 1\nlayer: org\n")
    (tmp_path / "projects").mkdir()
    (tmp_path / "projects/shop.yaml").write_text("version: 1\n")
    gate = toolgate.open(
        tmp_path / "gate.sqlite",
        policy=tmp_path / "rules.yml",
        project_policies=tmp_path / "projects",
        workspace=tmp_path,
    )
    try:
        edges: Edges = gate._runners["sandbox"]._edges()  # type: ignore[attr-defined]  # the one it runs commands by
        kept = kept_in(edges)
    finally:
        gate.close()
    locked = {os.path.relpath(path, tmp_path) for path in kept.locked}
    assert {"rules.yml", "more/base.yml", "projects/shop.yaml"} <= locked
    assert {str(tmp_path / f"gate.sqlite{end}") for end in ("", "-wal", "-shm", ".key", ".owners")} <= set(kept.hidden)
