"""The parts of the sandbox that run elsewhere, called here: the child, the layout, the filter."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from tests.unit.adapters.runners.sandbox import handlers

import toolgate
from toolgate.adapters.runners.sandbox import child, layout, seccomp
from toolgate.adapters.runners.sandbox.backend import Files
from toolgate.adapters.runners.sandbox.landlock import grants_of
from toolgate.kernel.context import Context
from toolgate.kernel.undo import UndoMetadata
from toolgate.ports.confinement import Confined

HERE = handlers.__name__


def asked(name: str, *args: Any, is_async: bool = False, main: str | None = None, **kwargs: Any) -> dict[str, Any]:
    module = HERE if main is None else "__main__"
    carried = [child.carried(value) for value in args]
    named = {key: child.carried(value) for key, value in kwargs.items()}
    return {
        "name": (module, name),
        "pickled": None,
        "main": main,
        "is_async": is_async,
        "args": carried,
        "kwargs": named,
    }


def test_the_child_calls_functions_and_coroutines() -> None:
    assert child._work(asked("add", first=1, is_async=True), lambda _told: None) == 2
    assert child._work({**asked("add"), "pickled": len, "args": ["abc"]}, lambda _told: None) == 3


def test_the_child_reports_progress() -> None:
    told: list[dict[str, Any]] = []
    given = toolgate.ToolInput("1", "count", {"to": 1}, context=Context(host=object()))
    output = child._work(asked("count", to=1, run=given), told.append)
    assert told == [{"progress": [0.0, "at 0", None]}]
    assert child._told(output)["output"]["artifacts"] == ["made"]
    assert child._told({"a": 1}) == {"value": {"a": 1}}


def test_undo_data_and_contexts_travel() -> None:
    undo = UndoMetadata("1", "change", {"was": 1})
    assert child.carried(undo) is undo
    assert child.carried(Context(host=object())).host is None
    assert child.carried(5) == 5


def test_a_script_is_run_for_its_functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "app.py"
    script.write_text("def double(number):\n    return number * 2\n\nNOT = 3\n")
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    assert child._work(asked("double", number=4, main=str(script)), lambda _told: None) == 8
    with pytest.raises(TypeError, match="not callable"):
        child.find("__main__", "NOT", str(script))


@pytest.mark.parametrize("text", ["open('/no/such/file')", "raise SystemExit(3)"])
def test_a_script_that_fails_when_read_again_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    script = tmp_path / "app.py"
    script.write_text(f"def double(number):\n    return number * 2\n\n{text}\n")
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    with pytest.raises(ImportError, match="if __name__ == '__main__'"):
        child.find("__main__", "double", str(script))


def test_a_function_that_stands_in_no_file_is_told_so() -> None:
    with pytest.raises(ImportError, match="move it to a module"):
        child.find("__main__", "double", None)


def test_the_child_answers_on_what_was_stdout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    class Stdin:
        buffer = io.BytesIO(pickle.dumps(asked("fail", text="no")))

    monkeypatch.setattr(sys, "stdin", Stdin())
    kept = os.dup(1)
    try:
        child.main()
    finally:
        os.dup2(kept, 1)
        os.close(kept)
    assert json.loads(capfd.readouterr().out) == {
        "raised": "LookupError",
        "text": "no",
        "transient": False,
        "kinds": ["BaseException", "Exception", "LookupError", "object"],
        "began": True,
    }


def test_a_program_needs_its_prefix_and_its_interpreter(tmp_path: Path) -> None:
    prefix = tmp_path / "node"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "lib").mkdir()
    program = prefix / "bin" / "tool"
    program.write_text(f"#!{sys.executable}\n")
    found = layout.runtime_of(str(program))
    assert str(prefix) in found
    assert layout.runtime_of("/bin/true") == ()
    alone = tmp_path / "alone"
    alone.write_text("x")
    assert layout.runtime_of(str(alone)) == (str(alone),)


def test_home_directories_are_never_a_prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "lib").mkdir()
    program = tmp_path / "bin" / "mine"
    program.write_text("x")
    monkeypatch.setattr(layout, "_homes", lambda: frozenset({str(tmp_path)}))
    assert layout.runtime_of(str(program)) == (str(program),)


def test_what_a_person_keeps_beside_their_programs_is_not_shown_with_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (".local", "moved"):
        (tmp_path / name / "bin").mkdir(parents=True)
        (tmp_path / name / "lib").mkdir()
        (tmp_path / name / "bin" / "mine").write_text("x")
    mine = str(tmp_path / ".local" / "bin" / "mine")
    assert layout.runtime_of(mine) == (mine,)
    other = tmp_path / "person"
    other.mkdir()
    (other / ".local").symlink_to(tmp_path / "moved")
    monkeypatch.setenv("HOME", str(other))
    layout._homes.cache_clear()
    try:
        named, real = str(other / ".local" / "bin" / "mine"), str(tmp_path / "moved" / "bin" / "mine")
        assert layout.runtime_of(named) == (named, real)
    finally:
        layout._homes.cache_clear()


def test_what_blocks_a_user_is_named(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    (closed / "inner").mkdir(parents=True)
    closed.chmod(0o700)
    tmp_path.chmod(0o755)
    blocked = layout.blocker(str(closed / "inner"), 12345, 12345)
    assert blocked is not None
    assert str(closed).startswith(blocked)
    assert layout.blocker("/usr/bin", 12345, 12345) is None
    assert layout.blocker("/nonexistent/x", 12345, 12345) == "/nonexistent"
    assert layout.blocker(str(closed), 0, 0) is None


@pytest.mark.parametrize("name", seccomp.MACHINES)
def test_every_jump_of_the_filter_stays_inside(name: str) -> None:
    program = seccomp.program(seccomp.MACHINES[name], internet=False, local=False)
    count = len(program) // 8
    for index in range(count):
        code, yes, no, _ = struct.unpack_from("=HBBI", program, index * 8)
        if code & 7 == 5:
            assert index + 1 + max(yes, no) < count
    assert struct.unpack_from("=HBBI", program, (count - 1) * 8)[0] == 6


def test_grants_go_around_what_is_hidden(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "open").write_text("x")
    (tmp_path / "a" / "secret").write_text("x")
    (tmp_path / "b").mkdir()
    confined = Confined(argv=("/bin/true",), writable=(str(tmp_path),), hidden=(str(tmp_path / "a" / "secret"),))
    granted = dict(grants_of(confined, "/tmp"))
    assert str(tmp_path / "a" / "open") in granted
    assert str(tmp_path / "b") in granted
    assert str(tmp_path / "a" / "secret") not in granted
    assert granted[str(tmp_path / "a")] == 1 << 3


def test_what_a_killed_owner_left_is_taken_away_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    alive = Files()
    left, young, link = (tmp_path / f"toolgate-sandbox-{name}" for name in ("left", "young", "link"))
    left.mkdir()
    (left / "passwd").write_text("x")
    young.mkdir()
    link.symlink_to(tmp_path / "elsewhere")
    for path in (left, Path(alive.path)):
        os.utime(path, (0, 0))
    another = Files()
    assert {path.name for path in tmp_path.iterdir()} == {
        Path(alive.path).name, Path(another.path).name, young.name, link.name
    }  # fmt: skip
    for files in (alive, another):
        files.close()
    assert {path.name for path in tmp_path.iterdir()} == {young.name, link.name}


def test_a_folder_that_vanishes_while_it_is_granted_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    hidden = (str(tmp_path / "gone" / "secret"),)
    real = os.scandir

    def scandir(path: str) -> Any:
        if path.endswith("gone"):
            raise FileNotFoundError(path)
        return real(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "scandir", scandir)
        found = grants_of(Confined(argv=("/bin/true",), writable=(str(tmp_path),), hidden=hidden), str(tmp_path / "t"))
    assert str(tmp_path / "gone") in [path for path, _ in found]
