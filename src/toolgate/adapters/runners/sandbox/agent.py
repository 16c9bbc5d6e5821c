"""What of the user's ssh agent a sandboxed program is given: the list of its keys, and signatures. Nothing else.

Messages are those of the agent protocol: four bytes of length, one of type, the rest. What would add or remove keys,
lock the agent or use an extension of it is answered with a failure, and never reaches it.
"""

from __future__ import annotations

import socket
import struct

AGENT_CONNECTIONS = 16
"""How often one run may connect to the agent."""
MAX_MESSAGE = 256 * 1024
MAX_MESSAGES = 64
_LIST, _SIGN, _FAILURE = 11, 13, 5
_REFUSED = struct.pack(">IB", 1, _FAILURE)


def relay(client: socket.socket, agent: socket.socket) -> None:
    """Answer a client's messages from the agent, until it is done; EOFError where one breaks off."""
    for _ in range(MAX_MESSAGES):
        asked = _message(client)
        if not asked:
            return
        if asked[4] not in (_LIST, _SIGN):
            client.sendall(_REFUSED)
            continue
        agent.sendall(asked)
        client.sendall(_message(agent) or _REFUSED)


def _message(source: socket.socket) -> bytes:
    """Return the next message whole; nothing at the end."""
    head = _exactly(source, 4, may_end=True)
    if not head:
        return b""
    (length,) = struct.unpack(">I", head)
    if not 0 < length <= MAX_MESSAGE:
        raise EOFError("no message of an agent is so long")
    return head + _exactly(source, length)


def _exactly(source: socket.socket, count: int, *, may_end: bool = False) -> bytes:
    found = b""
    while len(found) < count:
        piece = source.recv(count - len(found))
        if not piece:
            if may_end and not found:
                return b""
            raise EOFError("it broke off")
        found += piece
    return found
