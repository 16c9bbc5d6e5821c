"""What a sandboxed program gets of an ssh agent: the list of its keys, and signatures."""

from __future__ import annotations

import socket
import struct
import threading

import pytest

from toolgate.adapters.runners.sandbox import agent
from toolgate.adapters.runners.sandbox.agent import relay

LIST, SIGN, FAILURE = 11, 13, 5


def message(kind: int, data: bytes = b"") -> bytes:
    return struct.pack(">IB", 1 + len(data), kind) + data


@pytest.mark.parametrize(
    ("asked", "reaches"),
    [(message(LIST), True), (message(SIGN, b"data"), True)]
    + [(message(kind, b"x"), False) for kind in (1, 9, 17, 18, 19, 20, 22, 23, 25, 26, 27)],
)
def test_only_two_questions_reach_the_agent(asked: bytes, reaches: bool) -> None:
    client, ours = socket.socketpair()
    theirs, keeper = socket.socketpair()
    with client, ours, theirs, keeper:
        if reaches:
            keeper.sendall(message(12, b"keys"))
        client.sendall(asked)
        client.shutdown(socket.SHUT_WR)
        relay(ours, theirs)
        theirs.close()
        assert keeper.recv(100) == (asked if reaches else b"")
        assert client.recv(100) == (message(12, b"keys") if reaches else message(FAILURE))


@pytest.mark.parametrize("asked", [b"\0\0", b"\0\0\0\0", struct.pack(">I", agent.MAX_MESSAGE + 1), message(LIST)[:4]])
def test_a_message_that_is_none_ends_it(asked: bytes) -> None:
    client, ours = socket.socketpair()
    theirs, keeper = socket.socketpair()
    with client, ours, theirs, keeper:
        client.sendall(asked)
        client.shutdown(socket.SHUT_WR)
        with pytest.raises(EOFError):
            relay(ours, theirs)


def test_one_connection_asks_a_bounded_number_of_times() -> None:
    client, ours = socket.socketpair()
    theirs, keeper = socket.socketpair()
    with client, ours, theirs, keeper:
        work = threading.Thread(target=relay, args=(ours, theirs))
        work.start()
        for _ in range(agent.MAX_MESSAGES):
            client.sendall(message(1))
        work.join(10)
        assert not work.is_alive()
