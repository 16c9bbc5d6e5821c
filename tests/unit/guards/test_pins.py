"""What a program is at the moment: its content, where it leads, what interprets it, and when it is read again."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

import pytest

from toolgate.guards import pins
from toolgate.guards.argv import parse
from toolgate.guards.grammar import Command
from toolgate.guards.pins import look, look_again, remember, started
from toolgate.guards.programs import CommandTable
from toolgate.kernel.pin import Program


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pins, "_known", {})


def program(path: Path, text: str = "#!/bin/sh\n", *, age_s: int = 10) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    then = path.stat().st_mtime_ns - age_s * 10**9
    os.utime(path, ns=(then, then))
    return path


def looked(work: Path, path: Path, *directories: Path) -> tuple[Program, ...]:
    table = CommandTable({}, tuple(map(str, directories)), (str(work),))
    return look([str(path)], table, [str(work)])


def test_a_script_is_its_content_and_its_interpreter(tmp_path: Path) -> None:
    path = program(tmp_path / "bin" / "frob", "#!/bin/sh -e\nexit\n")
    (found,) = looked(tmp_path, path)
    assert found.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (found.path, found.target, found.size) == (str(path), str(path), 18)
    assert (found.shebang, found.interpreter) == ("/bin/sh -e", "/bin/sh")


def test_what_interprets_it_is_looked_at_where_somebody_could_replace_it(tmp_path: Path) -> None:
    own = program(tmp_path / "bin" / "node", "binary")
    script = program(tmp_path / "bin" / "tsc", "#!/usr/bin/env -S A=1 node --x\n")
    found = looked(tmp_path, script, tmp_path / "bin")
    assert [one.path for one in found] == [str(script), str(own)]
    assert found[0].interpreter == str(own)
    own.unlink()
    (alone,) = looked(tmp_path, script, tmp_path / "bin")
    assert alone.interpreter != str(own)
    assert alone.identity != found[0].identity


def test_a_file_that_is_only_called_env_is_the_interpreter_itself(tmp_path: Path) -> None:
    own = program(tmp_path / "env", "binary")
    script = program(tmp_path / "bin" / "tsc", f"#!{own} node\n")
    assert [one.path for one in looked(tmp_path, script)] == [str(script), str(own)]


def test_scripts_that_interpret_each_other_end(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    program(one, f"#!{other}\n")
    program(other, f"#!{one}\n")
    assert len(looked(tmp_path, one)) == 2
    program(other, "#!\n")
    assert len(looked(tmp_path, one)) == 2
    other.unlink()
    assert len(looked(tmp_path, one)) == 1


def test_a_link_to_the_systems_own_is_known_by_where_it_leads(tmp_path: Path) -> None:
    link = tmp_path / ".venv" / "bin" / "cat"
    link.parent.mkdir(parents=True)
    link.symlink_to("/usr/bin/cat")
    (found,) = looked(tmp_path, link)
    assert (found.sha256, found.target) == (None, os.path.realpath("/usr/bin/cat"))
    assert "a link to" in found.words
    link.unlink()
    link.symlink_to("/usr/bin/head")
    assert looked(tmp_path, link)[0].identity != found.identity


def test_the_systems_own_and_what_lies_elsewhere_are_not_looked_at(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    assert looked(work, Path("/usr/bin/cat"), Path("/usr/bin")) == ()
    assert looked(work, program(tmp_path / "elsewhere" / "frob")) == ()
    assert len(looked(work, program(tmp_path / "tools" / "frob"), tmp_path / "tools")) == 1
    assert look([str(program(work / "frob"))], {}, [str(work)])[0].path == str(work / "frob")


def test_a_file_is_read_again_only_where_it_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = program(tmp_path / "frob")
    monkeypatch.setattr(pins, "SETTLED_NS", -1)
    (found,) = looked(tmp_path, path)
    monkeypatch.setattr(pins, "_content", None)  # nobody reads it
    assert looked(tmp_path, path) == (found,)
    monkeypatch.setattr(pins, "_known", {})
    remember([found, found._replace(sha256=None), found._replace(stamp="")])
    assert looked(tmp_path, path) == (found,)
    path.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(TypeError):
        looked(tmp_path, path)


def test_a_file_that_changed_just_now_proves_nothing(tmp_path: Path) -> None:
    path = program(tmp_path / "frob")  # its time of change, which nobody can set, is now
    (found,) = looked(tmp_path, path)
    assert found.stamp == ""
    assert not pins._known


def test_what_is_known_does_not_grow_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pins, "MAX_KNOWN", 2)
    remember(Program("/x", "/x", "aa", 1, "then", stamp=str(number)) for number in range(5))
    assert len(pins._known) <= 2


def test_what_cannot_be_read_is_never_what_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = program(tmp_path / "frob")
    before = looked(tmp_path, path)[0]
    monkeypatch.setattr(os, "access", lambda *_asked: False)
    (found,) = looked(tmp_path, path)
    assert found.sha256 == "unreadable"
    assert found.identity != before.identity
    path.unlink()
    os.mkfifo(path)
    monkeypatch.undo()
    assert looked(tmp_path, path) == ()


def test_a_program_on_record_is_looked_at_again(tmp_path: Path) -> None:
    path = program(tmp_path / "tsc", "#!/usr/bin/env nobody-has-it\n")
    pinned = looked(tmp_path, path)[0]._replace(interpreter="/somewhere/node")
    same = look_again(pinned)
    assert same is not None
    assert same.identity == pinned.identity
    path.write_text("#!/bin/sh\n")
    changed = look_again(pinned)
    assert changed is not None
    assert (changed.interpreter, changed.identity == pinned.identity) == ("/bin/sh", False)
    path.unlink()
    assert look_again(pinned) is None


def test_a_name_that_is_no_text_can_be_recorded(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/fr\xffob"))
    (found,) = looked(tmp_path, program(path))
    assert found.path.endswith("fr\\xffob")


def test_what_a_command_runs_counts_as_started(tmp_path: Path) -> None:
    inner = Command(name="tsc", executable="/srv/shop/bin/tsc")
    outer = Command(name="nice", executable="/usr/bin/nice", runs="command", interspersed=False)
    table = {"tsc": inner, "nice": outer, "py": Command(name="py", executable=sys.executable)}
    parsed = [parse(table, ["nice", "tsc"]), parse(table, ["py"])]
    assert started(parsed, table) == ["/usr/bin/nice", "/srv/shop/bin/tsc", sys.executable]
