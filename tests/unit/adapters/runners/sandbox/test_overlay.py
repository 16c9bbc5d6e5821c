"""Programs over a copy-on-write layer, as root and as a plain user; and how much any program may write."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.sandboxes import needs_bubblewrap

import toolgate
from toolgate.adapters.runners.sandbox import Sandbox
from toolgate.adapters.runners.sandbox import bubblewrap as bubblewrap_module
from toolgate.adapters.runners.sandbox.backend import NOBODY, Backend, Files, sandbox_user
from toolgate.adapters.runners.sandbox.bubblewrap import Bubblewrap
from toolgate.adapters.runners.sandbox.overlay import Overlay, outermost
from toolgate.errors import SandboxError
from toolgate.ports.confinement import MEBIBYTE, Confined, Written

pytestmark = needs_bubblewrap


@pytest.fixture
def bubblewrap(files: Files) -> Bubblewrap:
    return Bubblewrap(sandbox_user(None, None), files)


@pytest.fixture(params=["the sandbox's user owns it", "root owns it"])
def home(request: pytest.FixtureRequest, workspace: Path) -> Path:
    if os.geteuid() == 0 and request.param.startswith("root"):
        for each in (workspace, *workspace.iterdir()):
            os.chown(each, 0, 0)
    return workspace


def in_overlay(bubblewrap: Bubblewrap, home: Path, *scripts: str, size: int = MEBIBYTE) -> Sequence[Written]:
    with bubblewrap.overlay([str(home)], size) as overlay:
        for script in scripts:
            confined = Confined(argv=("/bin/sh", "-c", script), cwd=str(home), writable=(str(home),))
            finished = bubblewrap.run(confined, overlay=overlay)
            assert finished.ending == "exited", finished
            assert finished.stderr == b""
        written, too_much = overlay.collect()
        assert too_much == ""
    return written


def test_what_is_written_is_told_and_reaches_no_file(bubblewrap: Bubblewrap, home: Path) -> None:
    (home / "full").mkdir()
    (home / "full" / "inner").write_text("x")
    if os.geteuid() == 0:
        owner = home.stat()
        for each in (home / "full", home / "full" / "inner"):
            os.chown(each, owner.st_uid, owner.st_gid)

    written = in_overlay(
        bubblewrap,
        home,
        "echo new > new; echo more >> file.txt; ln file.txt other; ln -s x link; chmod 600 file.txt",
        "cat new > second; rm -r full; mkdir full; rm .env; mkfifo pipe; touch closed; chmod 000 closed",
    )

    found = {entry.path.decode(): entry for entry in written}
    assert {name: entry.kind for name, entry in found.items()} == {
        "new": "file",
        "file.txt": "file",
        "other": "file",
        "link": "link",
        "second": "file",
        "full": "folder",
        ".env": "gone",
        "pipe": "other",
        "closed": "file",
    }
    assert found["file.txt"].content + found["other"].content == b"insidemore\n"
    assert found["other"].same_as == b"file.txt"
    assert found["second"].content == b"new\n"
    assert found["file.txt"].mode == 0o600
    assert found["link"].target == b"x"
    assert found["full"].is_whole
    assert sorted(path.name for path in home.iterdir()) == [".env", "file.txt", "full"]
    assert (home / "file.txt").read_text() == "inside"


def test_a_program_can_neither_fake_a_layer_nor_make_devices(bubblewrap: Bubblewrap, home: Path) -> None:
    script = (
        "import os\n"
        "os.mkdir('made')\n"
        "for name in ('user.overlay.opaque', 'user.overlay.whiteout', 'trusted.overlay.opaque'):\n"
        "    try: os.setxattr('made', name, b'y')\n"
        "    except OSError: pass\n"
        "for number in (os.makedev(0, 0), os.makedev(1, 3)):\n"
        "    try: os.mknod('device%d' % number, 0o20666, number)\n"
        "    except OSError: pass\n"
        "os.setxattr('made', 'user.note', b'n')\n"
    )
    (home / "script.py").write_text(script)
    (home / "script.py").chmod(0o644)

    found = {entry.path: entry for entry in in_overlay(bubblewrap, home, "/usr/bin/python3 script.py")}

    assert not found[b"made"].is_whole
    assert found[b"made"].has_attributes
    assert all(entry.kind in ("other", "gone") for path, entry in found.items() if path.startswith(b"device"))


def test_a_layer_has_a_size_in_bytes_and_in_names(bubblewrap: Bubblewrap, home: Path) -> None:
    for script, what in (("head -c 3000000 /dev/zero > big || true", "disk"), ("seq 10010 | xargs touch", "names")):
        with bubblewrap.overlay([str(home)], (2 if what == "disk" else 64) * MEBIBYTE) as overlay:
            confined = Confined(argv=("/bin/sh", "-c", script), cwd=str(home), writable=(str(home),))
            bubblewrap.run(confined, overlay=overlay)
            assert overlay.collect() == ((), what)


def test_more_than_a_change_set_holds_is_not_told(
    bubblewrap: Bubblewrap, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolgate.adapters.runners.sandbox.overlay.MAX_BYTES", 10)
    with bubblewrap.overlay([str(home)], MEBIBYTE) as overlay:
        confined = Confined(argv=("/bin/sh", "-c", "echo 12345678901 > x"), cwd=str(home), writable=(str(home),))
        bubblewrap.run(confined, overlay=overlay)
        assert overlay.collect() == ((), "bytes")
        assert overlay.is_folder(str(home))
        assert not overlay.is_folder(str(home / "file.txt"))


def test_an_overlay_whose_process_is_gone_says_so(bubblewrap: Bubblewrap, home: Path) -> None:
    with bubblewrap.overlay([str(home)], MEBIBYTE) as overlay:
        overlay.wait()
        overlay._process.kill()
        with pytest.raises(SandboxError, match="ended or does not answer"):
            overlay.collect()


def test_an_overlay_that_cannot_be_made_says_why(bubblewrap: Bubblewrap, tmp_path: Path) -> None:
    with (
        bubblewrap.overlay([str(tmp_path / "missing")], MEBIBYTE) as overlay,
        pytest.raises(SandboxError, match="No such"),
    ):
        overlay.wait()


def test_only_bubblewrap_makes_overlays(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    sandbox = Sandbox()
    with pytest.raises(SandboxError, match="needs bubblewrap"):
        sandbox.overlay([str(home)], backend="none", size=MEBIBYTE)
    found = bubblewrap_module.find
    monkeypatch.setattr(bubblewrap_module, "find", lambda name: None if name == "nsenter" else found(name))
    with pytest.raises(SandboxError, match="nsenter"):
        sandbox.overlay([str(home)], size=MEBIBYTE)
    sandbox.close()


def test_the_test_of_overlays_holds_here_and_notices_what_does_not(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    sandbox = Sandbox()
    assert sandbox.overlay_problem(str(home)) is None
    assert "No such" in str(sandbox.overlay_problem(str(home / "missing")))
    monkeypatch.setattr(Overlay, "collect", lambda _self: ((), ""))
    assert "was not found" in str(sandbox.overlay_problem())
    sandbox.close()


def test_a_root_in_another_needs_no_layer_of_its_own() -> None:
    assert outermost(["/a/b", "/a", "/ab", "/a"]) == ("/a", "/ab")


def reachable_python() -> str:
    """An interpreter of this version that everybody can start."""
    for candidate in (
        os.path.realpath(sys.executable),
        "/usr/bin/python3.11",
        "/usr/bin/python3",
        "/usr/local/bin/python3",
    ):
        line = [candidate, "-c", "import sys; print(sys.version_info[:2])"]
        user = NOBODY if os.geteuid() == 0 else None
        try:
            done = subprocess.run(line, user=user, cwd="/", capture_output=True, text=True, check=False)
        except OSError:
            continue
        if done.stdout.strip() == str(sys.version_info[:2]):
            return candidate
    pytest.skip("no interpreter of this version can be started by a plain user")


PLAIN = """
import asyncio, os, sys
import toolgate
async def main(workspace, policy):
    assert os.geteuid() != 0
    async with toolgate.open("memory://", workspace=workspace, policy=policy, built_in_tools=True) as gate:
        script = "echo more >> file.txt; mkdir made; echo x > made/x; chmod 000 made/x; cat .env; id -u"
        result = await gate.call("execute_command", {"command": "sh", "args": ["-c", script]})
        assert result.success, result.error
        assert "SECRET" not in str(result.data), result.data
        assert open("file.txt").read() == "insidemore\\n"
        assert os.stat("made/x").st_mode & 0o777 == 0
        undone = await gate.undo(result.call_id)
        print(undone.status, undone.error, sorted(os.listdir(".")), open("file.txt").read())
os.chdir(sys.argv[1])
asyncio.run(main(*sys.argv[1:]))
"""


def test_a_plain_user_runs_commands_in_an_overlay_too(workspace: Path) -> None:
    policy = workspace.parent / f"{workspace.name}.yaml"
    policy.write_text(
        "version: 1\n"
        "tools: {execute_command: {commands: {overlay: true}}}\n"
        "commands: {sh: {writes: true, flags: {-c: str}, positionals: [{name: word, at_most: any}]}}\n"
    )
    policy.chmod(0o644)
    libraries = [path for path in sys.path if path.endswith("site-packages")]
    environment = {
        "PYTHONPATH": os.pathsep.join([os.path.dirname(toolgate.__path__[0]), *libraries]),
        "PATH": "/usr/bin:/bin",
    }
    done = subprocess.run(
        [reachable_python(), "-c", PLAIN, str(workspace), str(policy)],
        env=environment,
        user=NOBODY if os.geteuid() == 0 else None,
        group=NOBODY if os.geteuid() == 0 else None,
        extra_groups=[] if os.geteuid() == 0 else None,
        capture_output=True,
        text=True,
        check=False,
    )
    policy.unlink()

    assert done.returncode == 0, done.stderr
    assert done.stdout == "COMPLETED None ['.env', 'file.txt'] inside\n"


def writing(home: Path, script: str, disk_bytes: int) -> Confined:
    return Confined(argv=("/bin/sh", "-c", script), cwd=str(home), writable=(str(home),), disk_bytes=disk_bytes)


def test_a_program_that_writes_more_than_it_may_is_stopped(backend: Backend, workspace: Path) -> None:
    script = "for i in 1 2 3 4 5 6 7 8; do head -c 1000000 /dev/zero > f$i; done; sleep 20"

    finished = backend.run(writing(workspace, script, 5 * MEBIBYTE))

    assert finished.ending == "disk"
    assert backend.run(writing(workspace, "echo x > small", 5 * MEBIBYTE)).ending == "exited"


def test_one_file_is_never_larger_than_all_that_may_be_written(backend: Backend, workspace: Path) -> None:
    backend.run(writing(workspace, "head -c 9000000 /dev/zero > big", 2 * MEBIBYTE))

    assert (workspace / "big").stat().st_size <= 2 * MEBIBYTE
