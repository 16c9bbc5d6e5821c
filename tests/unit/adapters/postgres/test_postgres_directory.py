"""Accounts and tokens in PostgreSQL: those from before marks are taken over once, and keys can be changed."""

from __future__ import annotations

from pathlib import Path

import asyncpg
import orjson
import pytest
from tests.postgres import needs_postgres
from typer.testing import CliRunner

from toolgate import bootstrap
from toolgate.adapters import sealing
from toolgate.adapters.postgres import adopt, rekey
from toolgate.interfaces.cli.app import app
from toolgate.testing.clock import NOON
from toolgate.testing.conformance.directory import ANN, a_digest, a_token

pytestmark = needs_postgres


async def write(url: str, *statements: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute("SELECT set_config('toolgate.projects', '*', false)")
    for sql in statements:
        await connection.execute(sql)
    await connection.close()


async def test_accounts_from_before_marks_are_taken_over_once(postgres_url: str) -> None:
    directory = bootstrap.directory(postgres_url)
    assert adopt.adopt(postgres_url, by="root") == ((), 0, 0)
    await write(
        postgres_url,
        "INSERT INTO accounts (name, kind, roles) VALUES ('ann', 'person', '{\"p\": [\"finance\"]}')",
        "INSERT INTO tokens (id, account, digest, used_as, label, scope, created_at) VALUES ('t1', 'ann', "
        f"'\\x{a_digest('t1').hex()}', 'bearer', '', '{{\"projects\": null, \"abilities\": null}}', now())",
    )
    assert await directory.account("ann") is None
    assert adopt.adopt(postgres_url, by="root") == (("ann",), 1, 0)
    assert await directory.account("ann") == ANN
    assert await directory.find(a_digest("t1"), now=NOON) is not None
    await write(postgres_url, "INSERT INTO accounts (name, kind, roles) VALUES ('eve', 'admin', '{}')")
    assert adopt.adopt(postgres_url, by="root") == ((), 0, 1)
    assert await directory.account("eve") is None
    await directory.close()
    found = orjson.loads(CliRunner().invoke(app, ["audit", "verify", postgres_url, "--json"]).output)["differences"]
    assert [(one["kind"], one["id"]) for one in found] == [("account", "eve")]


async def test_accounts_and_tokens_count_after_a_change_of_keys(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(sealing.ENVIRONMENT)
    keys = tmp_path / "key"
    sealing.make_file(keys)
    url = f"{postgres_url}?key={keys}"
    directory = bootstrap.directory(url)
    await directory.put_account(ANN)
    await directory.put_token(a_token("t1"))
    await directory.close()
    keys.write_text(f"{sealing.new_key()}\n{keys.read_text()}")
    assert len(rekey.rekey(url, by="root").retired) == 1
    keys.write_text(keys.read_text().split()[0])
    directory = bootstrap.directory(url)
    assert await directory.find(a_digest("t1"), now=NOON) is not None
    await directory.close()
