"""The three stores, each opened anew where a measurement wants an empty one."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.postgres import Cluster

STORES = ("memory", "SQLite", "PostgreSQL")


class Places:
    """Gives every measurement a place of its own: nothing, a file, or a database."""

    def __init__(self, folder: Path, cluster: Cluster) -> None:
        self.folder = folder
        self.cluster = cluster
        self._numbers = itertools.count(1)

    @asynccontextmanager
    async def empty(self, store: str) -> AsyncIterator[str]:
        """Yield the URL of an empty store, removed afterwards."""
        if store == "memory":
            yield "memory://"
        elif store == "SQLite":
            path = self.folder / f"scale{next(self._numbers)}.db"
            yield f"sqlite:///{path}"
            for left in self.folder.glob(f"{path.name}*"):
                if left.is_file():
                    left.unlink()
        else:
            url = await asyncio.to_thread(self.cluster.new_database)
            try:
                yield url
            finally:
                await asyncio.to_thread(self.cluster.drop, url)
