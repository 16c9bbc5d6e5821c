"""What the parts of the client share: the connection and the project they speak of."""

from __future__ import annotations

from toolgate.interfaces.client.address import segment
from toolgate.interfaces.client.connection import Connection


class Part:
    """Some requests of a client. `Client` is all parts together."""

    _connection: Connection
    _base: str
    project: str

    def _path(self, *parts: str) -> str:
        """The path of something in the project; ids are quoted."""
        return "/".join([self._base, *map(segment, parts)])
