"""What adapters that keep their rows in the store's own SQLite file need of it: connections, sealing, who is alive."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from toolgate.adapters import sealing
from toolgate.adapters.sealing import check_keys
from toolgate.adapters.sqlite import owners
from toolgate.adapters.sqlite.file import CREATE_S, PUT_KEYS, connect, keys_of, open_file
from toolgate.errors import StoreError


class Beside:
    """A file of ours, made or upgraded if need be, and the keys to what is sealed in it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        connection = open_file(path, busy_s=CREATE_S)
        try:
            noted = keys_of(connection)
            self.sealer = sealing.load(path.with_name(path.name + ".key"), create=not noted)
            check_keys(noted, self.sealer)
            if self.sealer.current not in noted:
                connection.execute(PUT_KEYS, (" ".join([*noted, self.sealer.current]),))
        except sqlite3.Error as error:
            raise StoreError(f"The file {path.name} cannot be written: {error}.") from error
        finally:
            connection.close()

    def connect(self) -> sqlite3.Connection:
        """Return a connection of its own that waits for other writers."""
        return connect(self._path, busy_s=CREATE_S)

    def is_alive(self, owner: str) -> bool:
        """Whether the process that opened the store as this owner still lives."""
        return owners.is_alive(self._path.with_name(self._path.name + ".owners"), owner)
