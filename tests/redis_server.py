"""A Redis server of the tests' own, on a free port, that can be killed and started again."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest
import redis

from toolgate.testing.patience import PATIENCE_S

BINARY = shutil.which("redis-server")


class RedisServer:
    """One data folder; every write is on disk before it is answered, so that a killed server forgets nothing."""

    def __init__(self, folder: Path) -> None:
        if BINARY is None:
            pytest.skip("redis-server is not installed")
        self._folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.process = subprocess.Popen(
            [
                str(BINARY), "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self._folder),
                "--appendonly", "yes", "--appendfsync", "always", "--save", "",
            ],
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        client = redis.Redis(port=self.port)
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                client.ping()
            except redis.RedisError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
            else:
                client.close()
                return

    def kill(self) -> None:
        """End it like a power cut does."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
