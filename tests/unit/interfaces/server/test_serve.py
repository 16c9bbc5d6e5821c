"""Before a server opens anything it looks whether it can listen."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.programs import here

from toolgate.errors import UsageError
from toolgate.interfaces.server.serve import check_address


@pytest.fixture
def taken() -> Iterator[int]:
    """A port somebody listens on."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


def test_a_port_that_is_taken_is_one_line_and_an_exit_code(taken: int, tmp_path: Path) -> None:
    policy = tmp_path / "toolgate.yaml"
    policy.write_text("version: 1\n")
    ended = here("serve", "--port", taken, "--policy", policy, "--database", f"sqlite:///{tmp_path}/a.db")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.count("\n") == 1
    assert f"Cannot listen on 127.0.0.1 port {taken}: another program listens there already." in ended.err
    assert not (tmp_path / "a.db").exists()


@pytest.mark.parametrize(
    ("host", "said"),
    [("192.0.2.1", "Cannot listen on 192.0.2.1"), ("no.such.invalid", "is not an address to listen on")],
)
def test_an_address_that_is_not_ours_is_said_so(host: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        check_address(host, 0)


def test_a_free_port_is_fine() -> None:
    check_address("127.0.0.1", 0)
