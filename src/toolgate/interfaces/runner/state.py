"""The folder a runner keeps its journal in: one runner at a time, and always the same work in it."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from pathlib import Path
from typing import Self

from toolgate.errors import UsageError
from toolgate.guards.descriptor import Descriptor
from toolgate.guards.state import state_folder

JOURNAL = "journal.db"
SIGNALS = "signals.db"
_BINDING = "runner.json"
_LOCK = "runner.lock"


def default_folder(server: str, project: str, workspace: Path) -> Path:
    """Where the state of this work is kept if nobody says otherwise: beneath the user's state folder."""
    state = state_folder()
    if state is None:
        raise UsageError("There is no home folder to keep the runner's journal in. Name a folder with --state.")
    digest = hashlib.sha256("\0".join((server, project, str(workspace))).encode()).hexdigest()
    return state / "runners" / digest[:16]


class StateFolder:
    """A runner's folder, locked while it is open. Raises UsageError where it cannot be had."""

    def __init__(self, path: Path, *, server: str, project: str, workspace: Path) -> None:
        self.path = path.absolute()
        self._binding = {"server": server, "project": project, "workspace": str(workspace)}
        self._descriptor: Descriptor | None = None
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.chmod(self.path, 0o700)
            self._lock()
            self._bind()
        except OSError as error:
            self.close()
            raise UsageError(f"The runner's state folder {self.path} cannot be used: {error.strerror}.") from None
        except UsageError:
            self.close()
            raise

    @property
    def journal(self) -> Path:
        """The database of what ran here: a Toolgate database like any other."""
        return self.path / JOURNAL

    @property
    def signals(self) -> Path:
        """The list of what was signalled and whether its result was delivered."""
        return self.path / SIGNALS

    def _lock(self) -> None:
        descriptor = Descriptor(os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        self._descriptor = descriptor
        try:
            fcntl.flock(descriptor.number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor.number, 20).decode(errors="replace").strip()
            raise UsageError(
                f"Another runner{f' (process {holder})' if holder.isdigit() else ''} does this work already; its state "
                f"is in {self.path}. Stop it, or give this one a folder of its own with --state."
            ) from None
        os.truncate(descriptor.number, 0)
        os.pwrite(descriptor.number, str(os.getpid()).encode(), 0)

    def _bind(self) -> None:
        """Refuse a folder that belongs to other work: its undelivered results would go to the wrong server."""
        file = self.path / _BINDING
        if not file.exists():
            temporary = file.with_suffix(".new")
            temporary.write_text(json.dumps(self._binding), encoding="utf-8")
            temporary.replace(file)
            return
        try:
            known = json.loads(file.read_text(encoding="utf-8"))
        except ValueError:
            known = None
        if known != self._binding:
            told = ", ".join(f"{name} {value}" for name, value in known.items()) if isinstance(known, dict) else "?"
            raise UsageError(
                f"The state folder {self.path} belongs to other work ({told}). Choose another with --state."
            )

    def close(self) -> None:
        """Let the next runner in."""
        if self._descriptor is not None:
            self._descriptor.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()
