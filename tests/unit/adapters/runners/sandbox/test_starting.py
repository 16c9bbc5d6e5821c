"""A program that cannot be started is an error of the sandbox, never an end of the program's own."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from toolgate.adapters.runners.sandbox.backend import NOBODY, Backend, Files, sandbox_user
from toolgate.adapters.runners.sandbox.landlock import Landlock, Unconfined
from toolgate.adapters.runners.sandbox.sandbox import Sandbox
from toolgate.errors import SandboxError
from toolgate.ports.confinement import Confined

MAX_WORD = 128 * 1024


def program(workspace: Path, content: bytes, mode: int) -> str:
    path = workspace / "program"
    path.write_bytes(content)
    path.chmod(mode)
    if os.geteuid() == 0:
        os.chown(path, NOBODY, NOBODY)
    return str(path)


def failure(backend: Backend, confined: Confined) -> SandboxError:
    with pytest.raises(SandboxError) as caught:
        backend.run(confined)
    return caught.value


def test_a_directory_that_is_gone(backend: Backend, workspace: Path) -> None:
    error = failure(backend, Confined(argv=("/bin/true",), cwd=str(workspace / "gone"), readable=(str(workspace),)))
    assert "could not be set up" in str(error)
    assert f"{workspace}/gone: No such file or directory" in str(error)
    assert not error.may_have_run


@pytest.mark.parametrize("path", ["/usr/bin/no-such-program", "/usr", "/etc/ld.so.conf"])
def test_a_program_that_is_gone_or_none(backend: Backend, path: str) -> None:
    error = failure(backend, Confined(argv=(path,)))
    assert f"nothing ran: {path}: " in str(error)
    assert not error.may_have_run


def test_a_program_that_the_user_may_not_execute(backend: Backend, workspace: Path) -> None:
    path = program(workspace, b"#!/bin/sh\necho ran\n", 0o611)
    error = failure(backend, Confined(argv=(path,), readable=(str(workspace),)))
    assert f"{path}: Permission denied" in str(error)


def test_a_program_whose_interpreter_is_gone(backend: Backend, workspace: Path) -> None:
    path = program(workspace, b"#!/no/such/interpreter\n", 0o755)
    error = failure(backend, Confined(argv=(path,), readable=(str(workspace),)))
    assert f"{path}: No such file or directory" in str(error)


TEXT = b"echo a shell ran it\n"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        TEXT,
        b"\x7fELF and nothing more",
        b"\x7fELF\x02\x01\n" + TEXT * 9,
        b"\x7fELF\x09\x01\n" + TEXT * 9,
        b"\x7fELF\x02\x07\n" + TEXT * 9,
    ],
)
def test_a_file_that_is_no_program(backend: Backend, workspace: Path, content: bytes) -> None:
    path = program(workspace, content, 0o755)
    error = failure(backend, Confined(argv=(path,), readable=(str(workspace),)))
    assert f"{path}: Exec format error" in str(error)
    assert not error.may_have_run


def test_a_file_that_is_no_program_without_a_sandbox(workspace: Path, files: Files) -> None:
    path = program(workspace, TEXT, 0o755)
    error = failure(Unconfined(sandbox_user(None, None), files), Confined(argv=(path,), readable=(str(workspace),)))
    assert f"{path}: Exec format error" in str(error)


def test_a_word_that_is_too_long() -> None:
    sandbox = Sandbox()
    for backend in ("bubblewrap", "landlock", "none"):
        with pytest.raises(SandboxError, match="Argument list too long") as caught:
            sandbox.run(Confined(argv=("/bin/true", "x" * MAX_WORD)), backend=backend)
        assert not caught.value.may_have_run
    sandbox.close()


def test_a_zero_byte_in_a_word(files: Files) -> None:
    error = failure(Landlock(sandbox_user(None, None), files), Confined(argv=("/bin/true", "a\0b")))
    assert "null byte" in str(error)


def test_many_words_that_are_long_together(backend: Backend) -> None:
    words = ["y" * 1000] * 400
    finished = backend.run(Confined(argv=("/bin/sh", "-c", 'echo "$#"', "sh", *words), timeout_s=60))
    assert finished.stdout == b"400\n"


def test_the_programs_own_codes_are_its_own(backend: Backend) -> None:
    for code in (1, 126, 127):
        script = f"echo 'sandbox: no' >&2; exit {code}"
        assert backend.run(Confined(argv=("/bin/sh", "-c", script))).exit_code == code


def test_who_says_that_it_was_not_started_may_have_run(backend: Backend) -> None:
    script = "echo 'prlimit: failed to execute x: No such file or directory' >&2; exit 127"
    confined = Confined(argv=("/bin/sh", "-c", script))
    if backend.name == "landlock":
        assert backend.run(confined).exit_code == 127
    else:
        assert failure(backend, confined).may_have_run


@pytest.mark.parametrize("kind", ["bubblewrap", "landlock"])
def test_an_interpreter_that_cannot_be_started_is_an_error_of_the_sandbox(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolgate.adapters.runners.sandbox.sandbox._REPORTS", {})
    monkeypatch.setattr("sys.executable", "/no/such/python")
    with closing(Sandbox()) as sandbox, pytest.raises(SandboxError, match="/no/such/python") as caught:
        sandbox.run(Confined(argv=("/bin/true",)), backend=kind)
    assert not caught.value.may_have_run
