"""What the parts of the client share: the connection and the project they speak of."""

from __future__ import annotations

from toolgate.interfaces.client.address import segment
from toolgate.interfaces.client.connection import Connection


class Part:
    """Some requests of a client, about one project."""

    def __init__(self, connection: Connection, project: str) -> None:
        self._connection = connection
        self._base = f"/my/projects/{segment(project)}"
        self.project = project

    def _path(self, *parts: str) -> str:
        """The path of something in the project; ids are quoted."""
        return "/".join([self._base, *map(segment, parts)])
