"""What a path points at, and that nothing else is opened."""

from __future__ import annotations

import gc
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolgate.errors import UsageError
from toolgate.guards.edges import judge_by_default, unfit
from toolgate.guards.files import PathRefused, Workspace


@pytest.fixture
def top(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "src").mkdir(parents=True)
    (root / "src" / "main.py").write_text("print()")
    (tmp_path / "secret").write_text("outside")
    return tmp_path


@pytest.fixture
def workspace(top: Path) -> Iterator[Workspace]:
    with Workspace(top / "root") as opened:
        yield opened


def test_paths_of_another_machine_are_judged_by_their_words(workspace: Workspace, top: Path) -> None:
    (top / "root" / "out").symlink_to("/etc")
    root = str(top / "root")
    led = {
        "out/passwd": (f"{root}/out/passwd", root),
        "a/../b": (f"{root}/b", root),
        ".": (root, root),
        "../x": (f"{top}/x", None),
        "//etc/passwd": ("/etc/passwd", None),
        f"{root}-other/x": (f"{root}-other/x", None),
    }
    assert {path: (fact.path, fact.root) for path in led for fact in [workspace.spell(path)]} == led
    assert workspace.spell("x", base="src").path == f"{root}/src/x"
    assert workspace.spell("/etc/x", base="src").root is None
    for wrong in ("", "a\0b"):
        with pytest.raises(PathRefused):
            workspace.spell(wrong)


@pytest.mark.parametrize(
    "given_path", ["src/main.py", "./src//main.py", "src/../src/main.py", "{root}/src/main.py", "{root}/./src/main.py"]
)
def test_spellings_of_one_file_are_one_fact(workspace: Workspace, top: Path, given_path: str) -> None:
    fact = workspace.look(given_path.format(root=top / "root"))
    assert fact.path == str(top / "root" / "src" / "main.py")
    assert (fact.root, fact.kind, fact.size) == (str(top / "root"), "file", 7)
    assert fact.relative == "src/main.py"


@pytest.mark.parametrize("given_path", ["../secret", "src/../../secret", "{top}/secret", "/etc/passwd", "/", ".."])
def test_what_lies_outside_is_told_so(workspace: Workspace, top: Path, given_path: str) -> None:
    fact = workspace.look(given_path.format(top=top))
    assert fact.root is None
    assert "outside" in str(unfit(fact))
    with pytest.raises(PathRefused):
        workspace.open(fact, os.O_RDONLY)
    with pytest.raises(UsageError):
        _ = fact.relative


def test_links_are_what_they_point_at(workspace: Workspace, top: Path) -> None:
    root = top / "root"
    (root / "inner").symlink_to("src/main.py")
    (root / "absolute").symlink_to(root / "src" / "main.py")
    (root / "directory").symlink_to("src")
    (root / "outer").symlink_to("../secret")
    (root / "outer_absolute").symlink_to(top / "secret")
    (root / "dangling").symlink_to("src/new.py")
    for name in ("inner", "absolute", "directory/main.py"):
        fact = workspace.look(name)
        assert fact.path == str(root / "src" / "main.py")
        descriptor = workspace.open(fact, os.O_RDONLY)
        assert os.read(descriptor, 100) == b"print()"
        os.close(descriptor)
    for name in ("outer", "outer_absolute"):
        assert workspace.look(name).root is None
    assert workspace.look("dangling").path == str(root / "src" / "new.py")
    assert workspace.look("directory/..").path == str(root)


def test_a_link_from_one_root_to_another_stays_allowed(top: Path) -> None:
    other = top / "other"
    other.mkdir()
    (other / "data").write_text("x")
    (top / "root" / "over").symlink_to(other / "data")
    with Workspace(top / "root", extra_roots=[other]) as workspace:
        assert workspace.look("over").root == str(other)
        assert workspace.look("../other/data").root == str(other)
        assert workspace.look(str(other / "data")).root == str(other)


def test_a_root_reached_over_a_link_is_the_same_root(top: Path) -> None:
    (top / "alias").symlink_to("root")
    with Workspace(top / "root") as workspace:
        fact = workspace.look(str(top / "alias" / "src" / "main.py"))
        assert fact.path == str(top / "root" / "src" / "main.py")
    with Workspace(top / "alias") as workspace:
        assert workspace.path == str(top / "root")


def test_what_is_not_there_has_a_place_all_the_same(workspace: Workspace, top: Path) -> None:
    (top / "root" / "directory").symlink_to("src")
    fact = workspace.look("directory/new/deep.txt")
    assert (fact.kind, fact.path) == ("absent", str(top / "root" / "src" / "new" / "deep.txt"))
    with pytest.raises(PathRefused, match="does not exist"):
        workspace.open(fact, os.O_RDONLY)


@pytest.mark.parametrize(
    ("given_path", "kind"),
    [
        ("", "empty"),
        ("a\0b", "nul"),
        ("a\udc80", "encoding"),
        ("x" * 256, "too_long"),
        ("x/" * 2100, "too_long"),
        ("loop", "loop"),
        ("src/main.py/x", "not_directory"),
        ("src/main.py/", "not_directory"),
        ("src/main.py/..", "not_directory"),
        ("missing/../src/main.py", "absent"),
    ],
)
def test_what_can_be_no_argument_is_refused(workspace: Workspace, top: Path, given_path: str, kind: str) -> None:
    (top / "root" / "loop").symlink_to("loop")
    with pytest.raises(PathRefused) as refused:
        workspace.look(given_path)
    assert refused.value.kind == kind


@pytest.mark.parametrize(
    "name", ["..data", "a b", "~", "$HOME", "%2e%2e", "*", "a;b", "-rf", "...", "\u202e.txt", "new\nline", "..\\x"]
)
def test_odd_names_are_ordinary_names(workspace: Workspace, top: Path, name: str) -> None:
    (top / "root" / name).write_text("x")
    fact = workspace.look(name)
    assert (fact.kind, fact.path) == ("file", f"{top / 'root'}/{name}")
    assert judge_by_default("read_file", fact, "read") is None


def test_paths_of_a_command_start_at_its_directory(workspace: Workspace, top: Path) -> None:
    assert workspace.look("main.py", base="src").path == str(top / "root" / "src" / "main.py")
    assert workspace.look("../../secret", base="src").root is None


def test_a_fifo_is_looked_at_and_opened_without_waiting(workspace: Workspace, top: Path) -> None:
    os.mkfifo(top / "root" / "pipe")
    fact = workspace.look("pipe")
    assert fact.kind == "fifo"
    assert "fifo" in str(unfit(fact))
    os.close(workspace.open(fact, os.O_RDONLY))
    with pytest.raises(PathRefused):
        workspace.open(fact, os.O_WRONLY)


def test_sockets_devices_and_made_up_files_are_no_files(workspace: Workspace, top: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(top / "root" / "s"))
        assert workspace.look("s").kind == "socket"
    with Workspace("/") as everything:
        assert everything.look("/dev/null").kind == "device"
        assert everything.look("/proc/self/environ").kind == "other"
        assert everything.look("/proc/self/root/etc/passwd").path == "/etc/passwd"


def test_a_hard_link_is_known_by_all_its_names(workspace: Workspace, top: Path) -> None:
    root = top / "root"
    (root / ".env").write_text("SECRET")
    os.link(root / ".env", root / "plain.txt")
    fact = workspace.look("plain.txt")
    assert fact.aliases == (str(root / ".env"),)
    assert not fact.linked_outside
    assert "protected" in str(judge_by_default("read_file", fact, "read"))


def test_a_hard_link_out_of_the_root_is_neither_read_nor_changed(workspace: Workspace, top: Path) -> None:
    os.link(top / "secret", top / "root" / "innocent.txt")
    fact = workspace.look("innocent.txt")
    assert fact.linked_outside
    assert "hard link" in str(unfit(fact))
    assert "hard link" in str(judge_by_default("edit_file", fact, "write"))


def test_two_names_inside_are_nothing_special(workspace: Workspace, top: Path) -> None:
    os.link(top / "root" / "src" / "main.py", top / "root" / "copy.py")
    assert judge_by_default("read_file", workspace.look("copy.py"), "read") is None


@pytest.mark.parametrize("name", [".env", ".ENV", ".Env.local", "a/.ssh/id", "KEY.PEM", "sub/id_rsa"])
def test_protected_names_are_refused_in_any_case_and_when_absent(workspace: Workspace, name: str) -> None:
    assert "protected" in str(judge_by_default("read_file", workspace.look(name), "read"))


@pytest.mark.parametrize("name", [".env.example", ".github/workflows/ci.yml", ".gitignore", "src/environment.py"])
def test_ordinary_names_are_not_protected(workspace: Workspace, name: str) -> None:
    assert judge_by_default("write_file", workspace.look(name), "write") is None


@pytest.mark.parametrize("name", [".git/config", ".git/hooks/pre-commit", "toolgate.yaml", ".GIT/HEAD"])
def test_names_that_steer_programs_can_be_read_and_not_written(workspace: Workspace, name: str) -> None:
    assert judge_by_default("read_file", workspace.look(name), "read") is None
    assert "protected" in str(judge_by_default("write_file", workspace.look(name), "write"))


def test_the_parent_of_a_new_file_is_opened(workspace: Workspace, top: Path) -> None:
    descriptor, name = workspace.open_parent(workspace.look("src/new.py"))
    assert (os.path.samestat(os.fstat(descriptor), (top / "root" / "src").stat()), name) == (True, "new.py")
    os.close(descriptor)
    for path in (".", "missing/new.py"):
        with pytest.raises(PathRefused):
            workspace.open_parent(workspace.look(path))


def test_a_file_replaced_after_the_look_is_not_opened(workspace: Workspace, top: Path) -> None:
    fact = workspace.look("src/main.py")
    (top / "root" / "src" / "main.py").rename(top / "root" / "src" / "old.py")
    (top / "root" / "src" / "main.py").write_text("other")
    with pytest.raises(PathRefused, match="replaced"):
        workspace.open(fact, os.O_RDONLY)
    (top / "root" / "src" / "main.py").unlink()
    (top / "root" / "src" / "main.py").symlink_to(top / "secret")
    with pytest.raises(PathRefused, match="changed"):
        workspace.open(fact, os.O_RDONLY)


def test_a_root_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Create it first"):
        Workspace(tmp_path, extra_roots=[tmp_path / "missing"])


def test_a_look_leaves_no_descriptor_behind(workspace: Workspace, top: Path) -> None:
    (top / "root" / "link").symlink_to("src/main.py")
    before = len(os.listdir("/proc/self/fd"))
    for path in ("src/main.py", "link", "missing", "../secret"):
        workspace.look(path)
    assert len(os.listdir("/proc/self/fd")) == before


def test_no_swap_gets_anything_from_outside_read(top: Path) -> None:
    """One thread swaps a directory for a link to the outside; what is opened is never from there."""
    root, stop = top / "root", threading.Event()
    outside = top / "outside"
    outside.mkdir()
    (outside / "main.py").write_text("OUTSIDE")
    (root / "door").mkdir()
    (root / "door" / "main.py").write_text("inside")
    (root / "spare").symlink_to(outside)

    def swap() -> None:
        while not stop.is_set():
            for one, two in (("door", "kept"), ("spare", "door"), ("door", "spare"), ("kept", "door")):
                os.rename(root / one, root / two)

    thread = threading.Thread(target=swap)
    thread.start()
    read: set[bytes] = set()
    refused = 0
    try:
        with Workspace(root) as workspace:
            for _ in range(4000):
                try:
                    fact = workspace.look("door/main.py")
                    if unfit(fact) is not None or fact.kind != "file":
                        refused += 1
                        continue
                    descriptor = workspace.open(fact, os.O_RDONLY)
                except PathRefused:
                    refused += 1
                    continue
                read.add(os.read(descriptor, 100))
                os.close(descriptor)
    finally:
        stop.set()
        thread.join()
    assert read == {b"inside"}
    assert refused


PIECES = st.sampled_from(["src", "main.py", "..", ".", "", "link", "out", "abs", "missing", "~", " ", "secret", "root"])


@given(pieces=st.lists(PIECES, min_size=1, max_size=8), absolute=st.booleans())
@example(pieces=["link", "..", "..", "secret"], absolute=False)
@example(pieces=["src", "main.py", "."], absolute=False)
def test_a_fact_agrees_with_the_system_about_where_a_path_leads(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[str], absolute: bool
) -> None:
    top = tmp_path_factory.getbasetemp() / "agree"
    root = top / "root"
    if not top.exists():
        (root / "src").mkdir(parents=True)
        (root / "src" / "main.py").write_text("x")
        (top / "secret").write_text("x")
        (root / "link").symlink_to("src")
        (root / "src" / "out").symlink_to("../../secret")
        (root / "src" / "abs").symlink_to(root)
    path = "/".join(pieces)
    path = f"{root}/{path}" if absolute else path
    if not path:
        return
    whole = os.path.join(root, path)
    with Workspace(root) as workspace:
        try:
            fact = workspace.look(path)
        except PathRefused:
            assert not os.path.exists(whole)
            return
    if os.path.exists(whole):
        assert fact.path == os.path.realpath(whole)
        assert (fact.root is not None) == (Path(fact.path) == root or root in Path(fact.path).parents)
    else:
        assert fact.kind == "absent"


def test_roots_that_nobody_has_any_more_are_closed(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    descriptor = workspace.roots[0].descriptor
    del workspace
    gc.collect()
    assert not descriptor.is_open


def test_a_closed_workspace_opens_nothing_whoever_has_the_number_now(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    workspace = Workspace(tmp_path)
    fact, number = workspace.look("mine"), workspace.roots[0].descriptor.number
    workspace.close()
    other = os.open(tmp_path, os.O_RDONLY)
    assert other == number
    try:
        with pytest.raises(PathRefused):
            workspace.open(fact, os.O_RDONLY)
        workspace.close()
        os.fstat(other)
    finally:
        os.close(other)
