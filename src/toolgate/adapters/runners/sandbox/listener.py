"""Open the proxy's port inside the sandbox, hand it to the proxy outside, and go on as the command.

Started as a script of its own: `listener.py DESCRIPTOR PORT SOCKET PROGRAM ARGUMENT...`. Whoever connects to the port
is answered from outside, by the one who was handed it; nothing of this stays behind. SOCKET: where the ssh agent is to
be found, handed out in the same way; `-` for none.
"""

from __future__ import annotations

import os
import socket
import sys

WAITING = 128
"""How many connections wait to be taken."""
FAILED = "listener: failed to execute "
"""What is said first where the command cannot be started."""


def main(handing: int, port: int, agent: str, argv: list[str]) -> None:
    """Hand the port out and become the command; never returns."""
    places: list[tuple[int, object]] = [(socket.AF_INET, ("127.0.0.1", port))]
    if agent != "-":
        places.append((socket.AF_UNIX, agent))
    with socket.socket(fileno=handing) as handed:
        opened = [socket.socket(family, socket.SOCK_STREAM) for family, _ in places]
        for listening, (_, place) in zip(opened, places, strict=True):
            listening.bind(place)  # type: ignore[arg-type]  # each family has its own kind
            listening.listen(WAITING)
        socket.send_fds(handed, [b"x"], [listening.fileno() for listening in opened])
        for listening in opened:
            listening.close()
    try:
        os.execv(argv[0], argv)
    except OSError as error:
        sys.stderr.write(f"{FAILED}{argv[0]}: {error.strerror}\n")
        sys.exit(127 if isinstance(error, FileNotFoundError) else 126)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:])
