"""What a gate's own files are: no command sees them, wherever they lie and whatever they are called."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.sandboxes import needs_sandbox

import toolgate
from toolgate.confines import PolicyEdges
from toolgate.guards.hidden import hidden_in
from toolgate.guards.state import state_folder


def private(url: str, *more: Path) -> tuple[str, ...]:
    """What no command may see besides what is kept in the user's state folder."""
    found: tuple[str, ...] = PolicyEdges(None, url, private=more)().private_files
    state = str(state_folder())
    assert state in found
    return tuple(one for one in found if one != state)


def test_the_database_its_key_and_what_is_named_are_private(tmp_path: Path) -> None:
    found = private(f"sqlite:///{tmp_path}/records", tmp_path / "laptop")
    assert {f"{tmp_path}/records{end}" for end in ("", "-wal", ".key", ".owners")} < {*found}
    assert f"{tmp_path}/laptop" in found
    assert private("memory://") == ()


def test_the_key_file_of_a_shared_database_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOOLGATE_KEY_FILE", raising=False)
    assert private("postgresql://db/toolgate") == ()
    assert private(f"postgresql://db/toolgate?pooler=transaction&key={tmp_path}/seal") == (f"{tmp_path}/seal",)
    monkeypatch.setenv("TOOLGATE_KEY_FILE", str(tmp_path / "other"))
    assert private("postgresql://db/toolgate") == (f"{tmp_path}/other",)


@needs_sandbox
def test_no_command_reads_a_token_that_lies_in_the_workspace(tmp_path: Path) -> None:
    for above in (tmp_path, *tmp_path.parents[:2]):
        above.chmod(0o755)
    token, journal = tmp_path / "laptop", tmp_path / "journals" / "signals"
    journal.parent.mkdir()
    for file in (token, journal):
        file.write_text("canary-token")
    given = {"command": "bash -c 'for x in laptop journals/*; do cat $x; done; true'"}
    policy = tmp_path / "toolgate.yaml"
    policy.write_text("{version: 1, tools: {execute_command: {commands: {unknown: ask}}}}")
    with toolgate.open(
        workspace=tmp_path,
        policy=policy,
        built_in_tools=True,
        approver=lambda _approval: True,
        private_files=[token, journal.parent],
    ) as gate:
        done = gate.sync.call("execute_command", given).unwrap()
        assert "canary-token" not in str(done)
        edges = PolicyEdges(tmp_path, "memory://", gate.policy, [token, journal.parent])()
    assert {str(token), str(journal.parent)} <= {*hidden_in(edges)}
