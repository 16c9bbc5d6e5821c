"""Opening beneath a directory: the system call and the walk by hand give the same answers."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgate.guards.beneath import HAS_OPENAT2, O_PATH, _openat2, open_beneath, walk_beneath

Opener = Callable[[int, bytes, int, int], int]
pytestmark = pytest.mark.skipif(not HAS_OPENAT2, reason="this kernel has no openat2")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    top = tmp_path_factory.mktemp("tree")
    root = top / "root"
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "file").write_text("inside")
    (top / "secret").write_text("outside")
    (root / "link").symlink_to("a")
    (root / "a" / "out").symlink_to("../../secret")
    (root / "a" / "abs").symlink_to(top / "secret")
    (root / "a" / "loop").symlink_to("loop")
    descriptor = os.open(root, O_PATH | os.O_DIRECTORY)
    yield descriptor
    os.close(descriptor)


def outcome(opener: Opener, directory: int, path: bytes, flags: int) -> tuple[int, int] | int:
    try:
        descriptor = opener(directory, path, flags, 0)
    except OSError as error:
        return error.errno or -1
    try:
        status = os.fstat(descriptor)
        return status.st_dev, status.st_ino
    finally:
        os.close(descriptor)


NAMES = st.sampled_from(["a", "b", "file", "link", "out", "abs", "loop", "..", ".", "", "missing", "secret"])


@given(names=st.lists(NAMES, min_size=1, max_size=6), flags=st.sampled_from([O_PATH, os.O_RDONLY]))
def test_the_walk_opens_what_the_system_call_opens(tree: int, names: list[str], flags: int) -> None:
    path = "/".join(names).encode()
    if not path:
        return
    by_call = outcome(_openat2, tree, path, flags)
    by_hand = outcome(walk_beneath, tree, path, flags)
    if isinstance(by_call, tuple) or isinstance(by_hand, tuple):
        assert by_call == by_hand
    else:
        # Which of several faults is named first may differ; that it is refused may not.
        assert by_hand in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EXDEV)


@pytest.mark.parametrize("opener", [open_beneath, walk_beneath])
@pytest.mark.parametrize(
    ("path", "number"),
    [
        (b"../secret", errno.EXDEV),
        (b"a/../../secret", errno.EXDEV),
        (b"/etc/passwd", errno.EXDEV),
        (b"..", errno.EXDEV),
        (b"link/file", errno.ELOOP),
        (b"a/out", errno.ELOOP),
        (b"a/abs", errno.ELOOP),
        (b"a/loop", errno.ELOOP),
        (b"a/missing", errno.ENOENT),
        (b"a/file/.", errno.ENOTDIR),
        (b"a/file/x", errno.ENOTDIR),
    ],
)
def test_what_leads_out_or_over_a_link_is_refused(tree: int, opener: Opener, path: bytes, number: int) -> None:
    assert outcome(opener, tree, path, O_PATH) == number


@pytest.mark.parametrize("opener", [open_beneath, walk_beneath])
def test_dots_that_stay_beneath_are_followed(tree: int, opener: Opener) -> None:
    assert outcome(opener, tree, b"a/b/../file", O_PATH) == outcome(opener, tree, b"./a//file", O_PATH)
    assert outcome(opener, tree, b"a/..", O_PATH) == outcome(opener, tree, b".", O_PATH)


@pytest.mark.parametrize("opener", [open_beneath, walk_beneath])
def test_a_new_file_is_made_with_its_mode(tree: int, opener: Opener, tmp_path: Path) -> None:
    directory = os.open(tmp_path, O_PATH | os.O_DIRECTORY)
    os.close(opener(directory, b"new", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    os.close(directory)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o600
