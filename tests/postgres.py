"""A real PostgreSQL for tests: one cluster for each test process, a fresh database for each test.

PostgreSQL does not run as root, so root hands the cluster to another account. Databases are copied from a template
that has the tables already. The role tests connect as owns the database and is no superuser, as in production, so
row-level security holds for it.
"""

from __future__ import annotations

import asyncio
import glob
import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

import asyncpg
import pytest

from toolgate.adapters import sealing
from toolgate.adapters.postgres import schema as postgres_schema
from toolgate.adapters.sql.tables import metadata
from toolgate.adapters.sql.versions import FLOOR, SETTING
from toolgate.testing.patience import PATIENCE_S, until_sync

ROLE = "gatekeeper"
TEMPLATE = "toolgate_template"
FOLDERS = sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)
KEY = sealing.new_key()


def program(name: str) -> str | None:
    """Where one of PostgreSQL's own programs is; None where it is not installed."""
    return shutil.which(name) or next((f"{folder}/{name}" for folder in FOLDERS if Path(folder, name).exists()), None)


needs_postgres = pytest.mark.skipif(program("initdb") is None, reason="PostgreSQL is not installed here")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def account() -> dict[str, Any]:
    """How to start a program as somebody PostgreSQL accepts."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
    raise RuntimeError("there is neither an account `postgres` nor `nobody` to run PostgreSQL as")


needs_pgbouncer = pytest.mark.skipif(
    program("initdb") is None or shutil.which("pgbouncer") is None, reason="PgBouncer is not installed here"
)


class Pooler:
    """A PgBouncer in transaction mode before a cluster: every transaction may get another session."""

    def __init__(self, cluster: Cluster) -> None:
        found = shutil.which("pgbouncer")
        if found is None:
            pytest.skip("pgbouncer is not installed here")
        self.port = free_port()
        file = cluster.folder / "pgbouncer.ini"
        file.write_text(
            f"[databases]\n* = host=127.0.0.1 port={cluster.port} user={ROLE}\n[pgbouncer]\nlisten_addr=127.0.0.1\n"
            f"listen_port={self.port}\nauth_type=any\npool_mode=transaction\ndefault_pool_size=3\nunix_socket_dir=\n"
        )
        file.chmod(0o644)
        self._process = subprocess.Popen(
            [found, "-q", str(file)], cwd="/", stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, **account()
        )
        until_sync(self._answers)

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(timeout=PATIENCE_S)


class Cluster:
    """A PostgreSQL server of this process alone. `fsync=False` is for tests in which nothing crashes."""

    def __init__(self, *, fsync: bool = False, counts_statements: bool = False) -> None:
        if program("initdb") is None:
            pytest.skip("PostgreSQL is not installed here")
        self._counts_statements = counts_statements
        self.folder = Path(tempfile.mkdtemp(prefix="toolgate-postgres-"))
        self.port = free_port()
        self._who = account()
        self._fsync = fsync
        self._numbers = itertools.count(1)
        self._emptied: str | None = None
        self._process: subprocess.Popen[bytes] | None = None
        if self._who:
            os.chown(self.folder, self._who["user"], self._who["group"])
        self._run("initdb", "-D", str(self.data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "-N")
        self.start()
        asyncio.run(self._prepare())

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def pid(self) -> int:
        """The server's first process, the parent of all its others."""
        assert self._process is not None
        return self._process.pid

    def _run(self, name: str, *arguments: str) -> None:
        found = program(name)
        assert found is not None
        subprocess.run([found, *arguments], check=True, capture_output=True, cwd="/", env=_plain(), **self._who)

    def start(self) -> None:
        """Start the server and return when it takes connections."""
        found = program("postgres")
        assert found is not None
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": str(self.folder),
            "fsync": "on" if self._fsync else "off",
            "shared_buffers": "64MB",
            "max_connections": "120",
            "log_min_messages": "fatal",
        }
        if self._counts_statements:
            settings |= {"shared_preload_libraries": "pg_stat_statements", "pg_stat_statements.track": "top"}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        self._process = subprocess.Popen(
            [found, "-D", str(self.data), *options],
            cwd="/", env=_plain(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **self._who,
        )  # fmt: skip
        until_sync(self._answers)

    def _answers(self) -> bool:
        try:
            asyncio.run(self.as_admin("SELECT 1"))
        except (OSError, asyncpg.PostgresError):
            return False
        return True

    def stop(self, sign: signal.Signals = signal.SIGINT) -> None:
        """End the server: SIGINT at once but in order, SIGQUIT as a crash does."""
        if self._process is not None:
            self._process.send_signal(sign)
            self._process.wait(timeout=PATIENCE_S)
            self._process = None

    def url(self, database: str, *, role: str = ROLE, port: int | None = None) -> str:
        return f"postgresql://{quote(role)}@127.0.0.1:{port or self.port}/{database}"

    async def as_admin(self, *statements: str, database: str = "postgres") -> list[Any]:
        """Run statements as the superuser; return the rows of the last."""
        connection = await asyncpg.connect(self.url(database, role="postgres"))
        try:
            rows: list[Any] = []
            for statement in statements:
                rows = await connection.fetch(statement)
            return rows
        finally:
            await connection.close()

    async def _prepare(self) -> None:
        await self.as_admin(f"CREATE ROLE {ROLE} LOGIN", f"CREATE DATABASE {TEMPLATE} OWNER {ROLE}")
        await postgres_schema.upgrade(self.url(TEMPLATE))

    def new_database(self) -> str:
        """Make a database with the tables in it and return its URL."""
        name = f"test{next(self._numbers)}"
        asyncio.run(self.as_admin(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE} OWNER {ROLE}"))
        return self.url(name)

    def bare_database(self) -> str:
        """Make a database without tables, as a new user's is, and return its URL."""
        name = f"test{next(self._numbers)}"
        asyncio.run(self.as_admin(f"CREATE DATABASE {name} OWNER {ROLE}"))
        return self.url(name)

    def emptied(self) -> str:
        """The URL of one database that is emptied each time: ten times as quick as making a new one."""
        if self._emptied is None:
            self._emptied = self.new_database()
        else:
            name = self._emptied.rpartition("/")[2]
            tables = "; ".join(f"DELETE FROM {table.name}" for table in reversed(metadata.sorted_tables))
            tables += f"; INSERT INTO settings (name, value) VALUES ('{SETTING}', '{FLOOR}')"  # as a new one has it
            orders = "IF to_regclass('toolgate_pgqueuer') IS NOT NULL THEN DELETE FROM toolgate_pgqueuer; END IF"
            ended = (
                f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname='{name}' AND usename='{ROLE}'"
            )
            asyncio.run(self.as_admin(ended, f"DO $$ BEGIN {tables}; {orders}; END $$", database=name))
        return self._emptied

    def drop(self, url: str) -> None:
        """Remove a database, whoever is still connected to it."""
        name = url.rpartition("/")[2]
        asyncio.run(self.as_admin(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)"))

    def close(self) -> None:
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)


def _plain() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "TZ": "UTC"}
