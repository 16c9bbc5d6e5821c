"""Who the server is to PostgreSQL, and what the walls between projects stand around."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from tests.integration.programs import here
from tests.postgres import KEY, Cluster, needs_postgres
from typer.testing import CliRunner

import toolgate
from toolgate import bootstrap
from toolgate.adapters import sealing
from toolgate.errors import StoreError
from toolgate.interfaces.cli.app import app
from toolgate.interfaces.server.tokens import new_token
from toolgate.kernel.context import PrincipalKind
from toolgate.ports.directory import Account

pytestmark = needs_postgres
NOW = datetime(2026, 1, 1, tzinfo=UTC)
SERVER = "door_keeper"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(sealing.ENVIRONMENT, KEY)


async def people(url: str) -> str:
    """Put somebody with a token into the directory; the token's id."""
    directory = bootstrap.directory(url)
    await directory.put_account(Account(name="ann", kind=PrincipalKind.PERSON, roles={"one": frozenset()}))
    _text, token = new_token("ann", now=NOW)
    await directory.put_token(token)
    assert [one.name for one in await directory.accounts()] == ["ann"]
    assert (await directory.find(token.digest, now=NOW)) is not None
    await directory.close()
    return token.id


async def raw(url: str, projects: str | None, sql: str) -> list[Any]:
    connection = await asyncpg.connect(url)
    try:
        if projects is not None:
            await connection.execute("SELECT set_config('toolgate.projects', $1, false)", projects)
        return [tuple(row) for row in await connection.fetch(sql)]
    finally:
        await connection.close()


async def test_a_transaction_of_a_project_sees_no_accounts_or_tokens(postgres_url: str) -> None:
    await people(postgres_url)
    for table in ("accounts", "tokens"):
        for projects in (None, "", "one", "one\x1ftwo", "_system"):
            assert await raw(postgres_url, projects, f"SELECT 1 FROM {table}") == []
        for projects in ("*", "\x1edirectory"):
            assert await raw(postgres_url, projects, f"SELECT 1 FROM {table}") == [(1,)]
    take_over = "UPDATE accounts SET kind='admin' RETURNING name"
    assert await raw(postgres_url, "one", take_over) == []
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await raw(postgres_url, "one", "INSERT INTO accounts (name, kind, roles) VALUES ('eve', 'admin', '{}')")


async def test_a_transaction_of_a_project_changes_no_setting(postgres_url: str) -> None:
    async with toolgate.open(postgres_url) as gate:
        await gate.set_mode("ALERT", by="ann")
    for projects in (None, "one"):
        [(kept,)] = await raw(postgres_url, projects, "SELECT value FROM settings WHERE name='mode'")
        assert "ALERT" in kept
        relax = "UPDATE settings SET value='NORMAL' WHERE name='mode' RETURNING name"
        assert await raw(postgres_url, projects, relax) == []
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await raw(postgres_url, projects, "INSERT INTO settings (name, value) VALUES ('x', 'y')")


async def test_no_project_can_be_named_as_the_directory(postgres_url: str) -> None:
    async with toolgate.open(postgres_url) as gate:
        with pytest.raises(StoreError, match="character 30"):
            await gate.events(project="\x1edirectory")


def name_of(url: str) -> str:
    return url.rpartition("/")[2]


async def a_server_role(cluster: Cluster, url: str) -> str:
    """Let another role than the owner use the tables, as the guide says; its URL."""
    make = f"DO $$ BEGIN CREATE ROLE {SERVER} LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$"
    grant = f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {SERVER}"
    count = f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {SERVER}"
    await cluster.as_admin(make, grant, count, database=name_of(url))
    return cluster.url(name_of(url), role=SERVER)


async def test_a_role_that_owns_nothing_serves_without_a_word(postgres_url: str, postgres_cluster: Cluster) -> None:
    @toolgate.tool(requires_approval=True)
    async def pay(amount: int) -> int:
        return amount

    url = await a_server_role(postgres_cluster, postgres_url)
    await people(url)
    async with toolgate.open(url, tools=[pay], workers=False) as gate:
        asked = await gate.call("pay", {"amount": 3}, wait=False)
        assert asked.approval_id is not None
        await gate.decide(asked.approval_id, "approve", by="ann")
        assert (await gate.wait(asked.call_id)).data == 3
    assert await asyncio.to_thread(bootstrap.role_warning, url) is None
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await raw(url, None, "ALTER TABLE tokens DISABLE ROW LEVEL SECURITY")


def test_superusers_and_owners_are_told_of_loudly(postgres_url: str, postgres_cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "toolgate.yaml").write_text("default: ask\n")
    for role, said in (("postgres", "is a SUPERUSER"), ("gatekeeper", "OWNS the tables")):
        url = postgres_cluster.url(name_of(postgres_url), role=role)
        assert said in (bootstrap.role_warning(url) or "")
        assert said in CliRunner().invoke(app, ["db", "status", url]).output
        looked = CliRunner().invoke(app, ["doctor", str(tmp_path), "--database", url])
        assert looked.exit_code == 0, looked.output
        [line] = [line for line in looked.output.splitlines() if said in line]
        assert line.startswith("warning  database: ")


def test_the_server_says_so_when_it_starts(postgres_url: str, tmp_path: Path) -> None:
    policy = tmp_path / "toolgate.yaml"
    policy.write_text("default: ask\n")
    ended = here("serve", "--policy", policy, "--database", postgres_url, "--tools", "no_such_module")
    assert ended.code == 1
    assert "toolgate: The server connects to PostgreSQL as 'gatekeeper', which OWNS the tables" in ended.err


def test_no_other_database_has_roles() -> None:
    assert bootstrap.role_warning("memory://") is None
