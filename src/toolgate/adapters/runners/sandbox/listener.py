"""Open the proxy's port inside the sandbox, hand it to the proxy outside, and go on as the command.

Started as a script of its own: `listener.py DESCRIPTOR PORT PROGRAM ARGUMENT...`. Whoever connects to the port is
answered from outside, by the one who was handed it; nothing of this stays behind.
"""

from __future__ import annotations

import os
import socket
import sys

WAITING = 128
"""How many connections wait to be taken."""
FAILED = "listener: failed to execute "
"""What is said first where the command cannot be started."""


def main(handing: int, port: int, argv: list[str]) -> None:
    """Hand the port out and become the command; never returns."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listening, socket.socket(fileno=handing) as handed:
        listening.bind(("127.0.0.1", port))
        listening.listen(WAITING)
        socket.send_fds(handed, [b"x"], [listening.fileno()])
    try:
        os.execv(argv[0], argv)
    except OSError as error:
        sys.stderr.write(f"{FAILED}{argv[0]}: {error.strerror}\n")
        sys.exit(127 if isinstance(error, FileNotFoundError) else 126)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
