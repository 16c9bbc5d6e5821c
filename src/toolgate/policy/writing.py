"""Put a changed text in the place of a policy file: whole or not at all, and only over what it was made from."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from toolgate.errors import ConflictError, UsageError
from toolgate.policy.compile import FilePolicy


def is_writable(names: Iterable[str]) -> bool:
    """Whether this process may put other files in the place of these."""
    places = [os.path.realpath(name) for name in names]
    return all(os.access(path, os.W_OK) for place in places for path in (place, os.path.dirname(place)))


def write_texts(policy: FilePolicy, texts: Mapping[str, str]) -> None:
    """Change files of a policy, if each still says what the policy was read from.

    ConflictError where one says something else by now, UsageError where it cannot be written. Every file is compared
    before the first is changed.
    """
    places = {name: os.path.realpath(name) for name in texts}
    try:
        for name, place in places.items():
            old = next(document.text for document in policy.documents if document.name == name)
            if Path(place).read_bytes() != old.encode():
                raise ConflictError(f"{name} changed meanwhile, so it was left as it is. Look at the change again.")
        for name, place in places.items():
            _replace(place, texts[name])
    except OSError as error:
        raise UsageError(f"A policy file cannot be changed: {error.strerror}. Apply the diff yourself.") from None


def _replace(place: str, text: str) -> None:
    with tempfile.TemporaryDirectory(dir=os.path.dirname(place), prefix=".toolgate-") as folder:
        new = Path(folder) / "policy"
        with open(new, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        _make_like(place, new)
        os.replace(new, place)


def _make_like(place: str, new: Path) -> None:
    """Give a file the rights and the owner of another."""
    status = os.stat(place)
    shutil.copymode(place, new)
    if (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
        os.chown(new, status.st_uid, status.st_gid)
