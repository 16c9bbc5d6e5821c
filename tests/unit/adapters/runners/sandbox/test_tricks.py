"""What a program that may write in the workspace tries against the files that are kept from it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from toolgate.adapters.runners.sandbox.backend import NOBODY, Backend
from toolgate.guards.edges import Edges
from toolgate.guards.files import Workspace
from toolgate.guards.hidden import kept_in
from toolgate.ports.confinement import Confined, Finished

SECRET, POLICY = "canary-3c1f", "version: 1\n"

EXCHANGE = "import ctypes; ctypes.CDLL(None).renameat2(-100, b'team', -100, b'free', 2)"

TRICKS = {
    "rename the folder of a secret": "mv app moved; cat moved/conf/.env",
    "rename the folder above it": "mv app/conf app/other; cat app/other/.env",
    "rename a hidden folder": "mv app/.ssh app/ssh; cat app/ssh/id",
    "copy a hidden folder": "cp -r app/.ssh ssh; cat ssh/id",
    "swap the folder of a policy": "mv team aside; mkdir team; echo evil > team/toolgate.yaml",
    "swap the policy": "echo evil > new; mv new team/toolgate.yaml",
    "write the policy": "echo evil > team/toolgate.yaml",
    "remove the policy": "rm -f team/toolgate.yaml; rm -rf team",
    "link to the policy": "ln team/toolgate.yaml name; echo evil > name",
    "write by another name": "echo evil > linked.txt",
    "read by another name": "cat secret.txt",
    "read through a link": "cat app/real.txt; cat tree/.envrc",
    "exchange two folders": f'python3 -c "{EXCHANGE}"',
    "plant a hook in a nested repository": "echo evil > app/repo/.git/hooks/pre-commit",
    "change a nested repository's settings": "echo evil >> app/repo/.git/config",
    "write a policy of another name": "echo evil > gate/rules.txt; mv gate old; mkdir gate; echo evil > gate/rules.txt",
    "read the database": "cat gate/state; mv gate old; cat old/state; cp -r gate copy; cat copy/state",
    "swap a nested repository": "mv app/repo app/old; mkdir -p app/repo/.git; echo evil > app/repo/.git/config",
    "swap its folder": "mv app/repo/.git app/repo/git; mkdir app/repo/.git; echo evil > app/repo/.git/config",
}


@pytest.fixture
def tree(workspace: Path) -> Path:
    """A workspace with secrets, a policy and a nested repository, each beneath folders of its own."""
    for folder in ("app/conf", "app/.ssh", "team", "free", "gate", "app/repo/.git/hooks"):
        (workspace / folder).mkdir(parents=True)
    (workspace / "app/conf/.env").write_text(SECRET)
    (workspace / "app/.ssh/id").write_text(SECRET)
    (workspace / "app/real.txt").write_text(SECRET)
    (workspace / "app/.envrc").symlink_to("real.txt")
    (workspace / "team/toolgate.yaml").write_text(POLICY)
    (workspace / "gate/rules.txt").write_text(POLICY)
    (workspace / "gate/state").write_text(SECRET)
    (workspace / "app/repo/.git/config").write_text("[core]\n")
    os.link(workspace / "team/toolgate.yaml", workspace / "linked.txt")
    os.link(workspace / "app/conf/.env", workspace / "secret.txt")
    if os.geteuid() == 0:
        for path in workspace.rglob("*"):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    return workspace


def run(backend: Backend, tree: Path, line: str) -> Finished:
    """Run a line of shell that may write in the whole workspace, but for what is kept."""
    with Workspace(str(tree)) as workspace:
        policy, private = (str(tree / "gate/rules.txt"),), (str(tree / "gate/state"),)
        kept = kept_in(Edges(workspace=workspace, policy_files=policy, private_files=private))
    return backend.run(
        Confined(
            argv=("/bin/sh", "-c", line),
            cwd=str(tree),
            writable=(str(tree),),
            hidden=kept.hidden,
            locked=kept.locked,
            timeout_s=60,
        )
    )


@pytest.mark.parametrize("trick", TRICKS)
def test_what_is_kept_stays_as_it_is_and_unread(backend: Backend, tree: Path, trick: str) -> None:
    finished = run(backend, tree, TRICKS[trick])
    assert SECRET.encode() not in finished.stdout + finished.stderr
    assert (tree / "team/toolgate.yaml").read_text() == (tree / "linked.txt").read_text() == POLICY
    assert (tree / "gate/rules.txt").read_text() == POLICY
    assert (tree / "app/repo/.git/config").read_text() == "[core]\n"
    assert not any((tree / "app/repo/.git/hooks").iterdir())
    assert (tree / "app/conf/.env").read_text() == (tree / "app/.ssh/id").read_text() == SECRET


REST = {
    "bubblewrap": "echo a > app/conf/a && mv app/conf/a app/b && mkdir app/new && mv app/new free/ && ls free",
    "landlock": "echo a > free/a && mkdir free/new && mv free/a free/new/b && rm free/new/b && ls free",
}
"""What may be written beside kept files. Landlock lets nobody add names to a folder on the way to one."""


def test_the_rest_of_a_workspace_with_secrets_can_be_written(backend: Backend, tree: Path) -> None:
    finished = run(backend, tree, REST[backend.name])
    assert (finished.exit_code, finished.stdout) == (0, b"new\n"), finished.stderr
