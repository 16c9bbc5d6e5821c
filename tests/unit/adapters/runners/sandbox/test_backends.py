"""What a confined program sees and can do, for every backend."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from toolgate.adapters.runners.sandbox.backend import Backend, Files, sandbox_user
from toolgate.adapters.runners.sandbox.bubblewrap import Bubblewrap
from toolgate.adapters.runners.sandbox.landlock import Landlock, Unconfined
from toolgate.adapters.runners.sandbox.probes import ProbeReport, probe, probe_in
from toolgate.adapters.runners.sandbox.sandbox import Sandbox
from toolgate.adapters.runners.sandbox.streams import Kept, children_of
from toolgate.errors import SandboxError
from toolgate.ports.confinement import Confined, Finished
from toolgate.testing.patience import until_sync as until


def sh(backend: Backend, script: str, *, workspace: Path | None = None, **options: object) -> Finished:
    places: dict[str, object] = {}
    if workspace is not None:
        places = {"cwd": str(workspace), "readable": (str(workspace),)}
    confined = Confined(argv=("/bin/sh", "-c", script), **{"timeout_s": 20.0, **places, **options})  # type: ignore[arg-type]  # a table of options
    return backend.run(confined)


def is_alive(mark: str) -> bool:
    for pid in os.listdir("/proc"):
        try:
            if pid.isdigit() and mark.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                return True
        except OSError:
            continue
    return False


def test_the_workspace_is_there_and_read_only(backend: Backend, workspace: Path) -> None:
    finished = sh(backend, "cat file.txt; pwd; touch new", workspace=workspace)
    assert finished.stdout.decode() == f"inside{workspace}\n"
    assert finished.exit_code != 0
    assert not (workspace / "new").exists()


def test_what_is_writable_can_be_written(backend: Backend, workspace: Path) -> None:
    finished = sh(backend, "echo more > new && cat new", workspace=workspace, readable=(), writable=(str(workspace),))
    assert (finished.exit_code, finished.stdout) == (0, b"more\n")
    assert (workspace / "new").read_text() == "more\n"


def test_what_is_hidden_cannot_be_read(backend: Backend, workspace: Path) -> None:
    hidden = (str(workspace / ".env"),)
    finished = sh(backend, "cat .env file.txt; grep -r SECRET .", workspace=workspace, hidden=hidden)
    assert b"SECRET" not in finished.stdout
    assert b"inside" in finished.stdout


def test_what_is_locked_can_be_read_and_not_changed(backend: Backend, workspace: Path) -> None:
    locked, writable = (str(workspace / "file.txt"),), (str(workspace),)
    finished = sh(
        backend, "cat file.txt; echo x > file.txt", workspace=workspace, readable=(), writable=writable, locked=locked
    )
    assert (finished.stdout, finished.exit_code != 0) == (b"inside", True)
    assert (workspace / "file.txt").read_text() == "inside"


def test_a_hidden_directory_is_empty(backend: Backend, workspace: Path) -> None:
    (workspace / ".ssh").mkdir()
    (workspace / ".ssh" / "id").write_text("KEY")
    finished = sh(backend, "cat .ssh/id", workspace=workspace, hidden=(str(workspace / ".ssh"),))
    assert finished.exit_code != 0
    assert b"KEY" not in finished.stdout


def test_other_files_of_the_host_cannot_be_read(backend: Backend, workspace: Path) -> None:
    outside = workspace.parent / f"outside-{uuid.uuid4().hex}"
    outside.write_text("OUTSIDE")
    try:
        finished = sh(backend, f"cat {outside} /etc/shadow /root/.bashrc /etc/hostname", workspace=workspace)
    finally:
        outside.unlink()
    assert finished.stdout == b""


def test_it_never_runs_as_root_and_gains_nothing(backend: Backend) -> None:
    finished = sh(backend, "id -u; grep -E 'CapEff|CapPrm|NoNewPrivs|Seccomp:' /proc/self/status")
    assert not finished.stdout.startswith(b"0\n")
    for line in finished.stdout.decode().splitlines()[1:]:
        name, value = line.split()
        assert (name, int(value, 16)) in {("CapEff:", 0), ("CapPrm:", 0), ("NoNewPrivs:", 1), ("Seccomp:", 2)}


def test_only_given_variables_are_set(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_TOKEN", "canary")
    finished = sh(backend, "env", environment={"GIVEN": "yes"})
    assert b"canary" not in finished.stdout
    assert b"GIVEN=yes" in finished.stdout


def test_set_user_id_bits_namespaces_and_mounts_are_refused(backend: Backend) -> None:
    finished = sh(
        backend,
        "cd $TMPDIR; touch f; chmod u+s f; unshare -U true; mount -t tmpfs x .; ls -l f",
    )
    assert finished.stderr.count(b"Operation not permitted") >= 2
    assert b"rws" not in finished.stdout


def test_the_deadline_is_for_everything(backend: Backend) -> None:
    mark = uuid.uuid4().hex
    script = f"setsid sh -c 'sleep 77; : {mark}' & sh -c 'sleep 78; : {mark}'; echo never"
    finished = sh(backend, script, timeout_s=1.0)
    assert (finished.exit_code, finished.ending) == (-1, "timeout")
    assert finished.duration_s < 6
    until(lambda: not is_alive(mark))


def test_nothing_outlives_a_deadline_that_comes_while_the_sandbox_is_being_made(backend: Backend) -> None:
    mark = uuid.uuid4().hex

    def run(number: int) -> str:
        return sh(backend, f"sleep 77; : {mark}", timeout_s=number / 500).ending

    with ThreadPoolExecutor(8) as pool:
        assert {*pool.map(run, range(60))} == {"timeout"}
    until(lambda: not is_alive(mark))


def test_whoever_kills_the_process_that_holds_the_sandbox_ends_all_of_it(backend: Backend) -> None:
    mark = uuid.uuid4().hex
    script = f"setsid sh -c 'sleep 77; : {mark}' & echo up; sh -c 'sleep 78; : {mark}'"
    confined, is_up = Confined(argv=("/bin/sh", "-c", script), timeout_s=120), threading.Event()
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(backend.run, confined, on_output=lambda _stream, _data: is_up.set())
        assert is_up.wait(60)
        for pid in children_of(os.getpid()):
            if any(word in Path(f"/proc/{pid}/cmdline").read_bytes() for word in (mark.encode(), b"/supervisor.py")):
                os.kill(pid, signal.SIGKILL)
        with pytest.raises(SandboxError):
            run.result(60)
    until(lambda: not is_alive(mark))


def test_a_program_that_ends_takes_its_tree_along(backend: Backend) -> None:
    mark = uuid.uuid4().hex
    script = f"setsid sh -c 'sleep 77; : {mark}' >/dev/null 2>&1 </dev/null & echo done"
    finished = sh(backend, script)
    assert (finished.ending, finished.stdout) == ("exited", b"done\n")
    assert not is_alive(mark)


def test_output_beyond_the_limit_is_cut_in_the_middle(backend: Backend) -> None:
    finished = sh(backend, "echo first; head -c 300000 /dev/zero | tr '\\0' x; echo; echo last", output_bytes=1000)
    assert finished.stdout.startswith(b"first\n")
    assert finished.stdout.endswith(b"last\n")
    assert b"bytes left out" in finished.stdout
    assert len(finished.stdout) < 1100


def test_it_is_fed_from_stdin(backend: Backend) -> None:
    data = b"x" * 300_000
    assert sh(backend, "wc -c", stdin=data).stdout.split() == [b"300000"]
    assert sh(backend, "exit 3", stdin=data).exit_code == 3


def test_without_data_stdin_is_empty_and_no_pipe(backend: Backend) -> None:
    script = "import os, stat; print(stat.S_ISCHR(os.fstat(0).st_mode), os.read(0, 1))"
    assert backend.run(Confined(argv=("/usr/bin/python3", "-I", "-c", script))).stdout == b"True b''\n"


def test_somebody_can_stop_it(backend: Backend) -> None:
    stop, pull = os.pipe()
    threading.Timer(0.3, os.write, (pull, b"x")).start()
    confined = Confined(argv=("/bin/sleep", "60"), timeout_s=30)
    finished = backend.run(confined, stop=stop)
    for end in (stop, pull):
        os.close(end)
    assert finished.ending == "cancelled"


def test_output_is_told_as_it_comes(backend: Backend) -> None:
    told: list[tuple[str, bytes]] = []
    backend.run(
        Confined(argv=("/bin/sh", "-c", "echo out; echo err >&2")),
        on_output=lambda name, data: told.append((name, data)),
    )
    assert sorted(told) == [("stderr", b"err\n"), ("stdout", b"out\n")]


@pytest.mark.parametrize("granted", [True, False])
def test_there_is_no_network_unless_granted(backend: Backend, granted: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        script = f"import socket; socket.create_connection(('127.0.0.1', {port}), 2); print('connected')"
        finished = backend.run(Confined(argv=("/usr/bin/python3", "-I", "-c", script), network=granted))
    assert (b"connected" in finished.stdout) is granted


def test_memory_is_limited(backend: Backend) -> None:
    script = "import time\nkept = [bytearray(32 << 20) for _ in range(64)]\ntime.sleep(5)"
    finished = backend.run(Confined(argv=("/usr/bin/python3", "-I", "-c", script), memory_bytes=128 << 20))
    assert finished.exit_code != 0


def test_probes_hold(backend: Backend, files: object) -> None:
    report = probe(backend, files.path)  # type: ignore[attr-defined]  # Files
    assert (report.problem, report.failed) == (None, ())
    assert {"write_proc_sys", "read_outside", "network", "fork_bomb", "memory_bomb", "keep_alive"} <= {*report.passed}


def test_probes_use_the_interpreter_and_the_workspace_of_calls(
    backend: Backend, files: Files, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[Confined] = []
    run = type(backend).run

    def noted(self: Backend, confined: Confined) -> Finished:
        tried.append(confined)
        return run(self, confined)

    monkeypatch.setattr(type(backend), "run", noted)
    assert probe_in(backend, files.path, (str(workspace),)).holds
    assert (tried[-1].argv[0], tried[-1].cwd) == (sys.executable, str(workspace))
    assert str(workspace) in tried[-1].readable
    gone = probe_in(backend, files.path, (str(workspace / "gone"),))
    assert "gone" in gone.summary
    assert not gone.holds


def test_probes_notice_a_backend_that_does_not_confine() -> None:
    class Leaky(Unconfined):
        name = "leaky"

    sandbox = Sandbox()
    report = probe(Leaky(sandbox_user(None, None), sandbox._files), sandbox._files.path)
    sandbox.close()
    assert {"read_outside", "write_outside", "network", "local_socket"} <= {*report.failed}
    assert not report.holds
    assert "got out" in report.summary


def test_without_a_sandbox_the_tree_still_dies(workspace: Path) -> None:
    sandbox = Sandbox()
    mark = uuid.uuid4().hex
    confined = Confined(argv=("/bin/sh", "-c", f"setsid sh -c 'sleep 77; : {mark}' & sleep 60"), timeout_s=1)
    assert sandbox.run(confined, backend="none").ending == "timeout"
    until(lambda: not is_alive(mark))
    sandbox.close()


def test_an_unknown_backend_is_refused() -> None:
    sandbox = Sandbox()
    with pytest.raises(SandboxError, match="no sandbox backend"):
        sandbox.choose("chroot")
    sandbox.close()


def test_nothing_runs_where_no_backend_can_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bubblewrap, "problem", lambda _self: "it is broken")
    monkeypatch.setattr("toolgate.adapters.runners.sandbox.sandbox.AUTO", ("bubblewrap",))
    monkeypatch.setattr("toolgate.adapters.runners.sandbox.sandbox._REPORTS", {})
    sandbox = Sandbox()
    with pytest.raises(SandboxError, match=r"nothing ran.*it is broken"):
        sandbox.run(Confined(argv=("/bin/true",)))
    sandbox.close()


def test_a_test_that_takes_too_long_is_no_reason_to_take_another_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    known: dict[object, ProbeReport] = {}
    monkeypatch.setattr("toolgate.adapters.runners.sandbox.sandbox._REPORTS", known)
    late = Finished(exit_code=-1, stdout=b"", stderr=b"", ending="timeout")
    told: list[ProbeReport] = []
    sandbox = Sandbox(on_tested=told.append)
    with monkeypatch.context() as busy:
        busy.setattr(Bubblewrap, "run", lambda *_given, **_options: late)
        busy.setattr(Landlock, "run", lambda *_given, **_options: late)
        with pytest.raises(SandboxError, match=r"not tested yet, so nothing ran\. .*did not end in time"):
            sandbox.choose()
    late_one = told[-1]
    assert late_one.is_unfinished
    assert all(one.backend != late_one.backend for one in known.values())
    assert sandbox.report(late_one.backend).holds  # it is tested again
    sandbox.close()


def test_what_is_in_the_way_is_named(backend: Backend) -> None:
    if backend.name != "bubblewrap":
        return
    with pytest.raises(SandboxError, match="/nonexistent does not exist"):
        backend.run(Confined(argv=("/bin/true",), readable=("/nonexistent",)))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root changes users")
def test_the_sandbox_is_never_root(workspace: Path) -> None:
    with pytest.raises(SandboxError, match="never runs as root"):
        sandbox_user(None, 0)
    os.chown(workspace, 1234, 1234)
    assert sandbox_user(str(workspace), None).uid == 1234
    assert sandbox_user(str(workspace), 4321).uid == 4321


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can put files where others reach them")
def test_a_workspace_of_roots_own_is_reached_and_written_as_roots(backend: Backend, workspace: Path) -> None:
    for path in (workspace, *workspace.iterdir()):
        os.chown(path, 0, 0)
        path.chmod(0o700 if path.is_dir() else 0o600)
    finished = sh(backend, "cat file.txt; echo x > new", workspace=workspace, readable=(), writable=(str(workspace),))
    assert (finished.exit_code, finished.stdout) == (0, b"inside")
    assert (workspace / "new").stat().st_uid == 0


def test_a_stream_within_its_limit_is_kept_whole() -> None:
    kept = Kept(10)
    for piece in (b"abc", b"defg", b"hij"):
        kept.add(piece)
    assert kept.value() == b"abcdefghij"
    kept.add(b"klmnop")
    assert kept.value() == b"abcde\n[... 6 bytes left out ...]\nlmnop"
