"""Every change of an account or a token is an event beside its row; rows from before marks are taken over, once."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

import toolgate
from toolgate import bootstrap
from toolgate.adapters import sealing
from toolgate.adapters.sqlite.rekey import rekey
from toolgate.interfaces.cli.app import app
from toolgate.ports.directory import TokenUse
from toolgate.testing.clock import NOON
from toolgate.testing.conformance.directory import ANN, a_digest, a_token


@pytest.fixture(autouse=True)
def no_key_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(sealing.ENVIRONMENT, raising=False)


def write(database: Path, *statements: str) -> None:
    with closing(sqlite3.connect(database)) as connection:
        for sql in statements:
            connection.execute(sql)
        connection.commit()


async def told(database: Path) -> list[tuple[str, dict[str, Any]]]:
    async with toolgate.open(f"sqlite:///{database}") as gate:
        return [(event.type, event.data) for event in await gate.events(project="_system")]


async def test_each_change_says_what_and_by_whom_and_never_a_digest(database: Path) -> None:
    directory = bootstrap.directory(f"sqlite:///{database}")
    await directory.put_account(ANN, by="root")
    await directory.put_account(replace(ANN, roles={"p": frozenset({"viewer"})}), by="root")
    await directory.put_token(a_token("t1", projects=frozenset({"p"})), by="root")
    await directory.put_token(a_token("s1", use=TokenUse.SESSION, parent="t1"), by="ann")
    await directory.put_token(a_token("k1", use=TokenUse.TICKET, parent="t1"), by="ann")
    await directory.revoke("t1", now=NOON, by="root")
    await directory.close()
    found = await told(database)
    assert [(name, data["by"]) for name, data in found] == [
        ("account.changed", "root"),
        ("account.changed", "root"),
        ("token.created", "root"),
        ("session.begun", "ann"),
        ("token.revoked", "root"),
        ("session.ended", "root"),
    ]
    assert (found[1][1]["roles"], found[2][1]["projects"]) == ({"p": ["viewer"]}, ["p"])
    with closing(sqlite3.connect(database)) as connection:
        kept = b"".join(row[0] for row in connection.execute("SELECT frame FROM events"))
    assert a_digest("t1") not in kept
    assert a_digest("t1").hex().encode() not in kept


async def test_accounts_from_before_marks_are_absent_until_somebody_takes_them_over(database: Path) -> None:
    bootstrap.threads(database)
    write(
        database,
        "INSERT INTO accounts (name, kind, roles) VALUES ('ann', 'person', '{\"p\": [\"finance\"]}')",
        "INSERT INTO tokens (id, account, digest, used_as, label, scope, created_at) VALUES ('t1', 'ann', "
        f"x'{a_digest('t1').hex()}', 'bearer', '', '{{\"projects\": null, \"abilities\": null}}', "
        "'2026-01-01 12:00:00.000000')",
    )
    directory = bootstrap.directory(f"sqlite:///{database}")
    assert await directory.account("ann") is None
    said = CliRunner().invoke(app, ["db", "upgrade", str(database), "--json"])
    assert orjson.loads(said.output)["adopted"] == {"accounts": ["ann"], "tokens": 1, "refused": 0}
    assert await directory.account("ann") == ANN
    assert await directory.find(a_digest("t1"), now=NOON) is not None
    await directory.close()
    assert [(name, data["adopted"]) for name, data in await told(database)] == [
        ("account.changed", True),
        ("token.created", True),
    ]


async def test_what_was_written_since_is_not_taken_over(database: Path) -> None:
    directory = bootstrap.directory(f"sqlite:///{database}")
    await directory.put_account(ANN)
    write(database, "INSERT INTO accounts (name, kind, roles) VALUES ('eve', 'admin', '{}')")
    said = CliRunner().invoke(app, ["db", "upgrade", str(database)])
    assert "1 accounts and tokens carry no mark and were not taken over" in said.output
    assert await directory.account("eve") is None
    await directory.close()


async def test_a_row_that_cannot_be_read_is_not_taken_over(database: Path) -> None:
    bootstrap.threads(database)
    write(database, "INSERT INTO accounts (name, kind, roles) VALUES ('eve', 'god', '{}')")
    said = CliRunner().invoke(app, ["db", "upgrade", str(database), "--json"])
    assert orjson.loads(said.output)["adopted"] == {"accounts": [], "tokens": 0, "refused": 1}


async def test_accounts_and_tokens_count_after_a_change_of_keys_and_forged_ones_do_not(database: Path) -> None:
    directory = bootstrap.directory(f"sqlite:///{database}")
    await directory.put_account(ANN)
    await directory.put_account(replace(ANN, name="eve"))
    await directory.put_token(a_token("t1"))
    await directory.close()
    write(database, "UPDATE accounts SET kind='admin' WHERE name='eve'")
    keys = database.with_name(database.name + ".key")
    keys.write_text(f"{sealing.new_key()}\n{keys.read_text()}")
    assert len(rekey(database, by="root").retired) == 1
    keys.write_text(keys.read_text().split()[0])
    directory = bootstrap.directory(f"sqlite:///{database}")
    assert await directory.find(a_digest("t1"), now=NOON) is not None
    assert [one.name for one in await directory.accounts()] == ["ann"]
    await directory.close()
    assert (await told(database))[-1][0] == "keys.changed"


async def test_a_row_that_does_not_count_is_told_of_once(database: Path, caplog: pytest.LogCaptureFixture) -> None:
    directory = bootstrap.directory(f"sqlite:///{database}")
    await directory.put_account(ANN)
    write(database, "UPDATE accounts SET kind='admin'")
    for _ in range(3):
        assert await directory.account("ann") is None
    await directory.close()
    assert [record.getMessage()[:37] for record in caplog.records] == ["account 'ann' counts as absent: its r"]


def test_a_command_on_the_database_is_recorded_as_its_users(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "carol")
    runner = CliRunner()
    created = ["token", "create", str(database), "ann", "--kind", "person", "--json"]
    made = orjson.loads(runner.invoke(app, created).output)
    runner.invoke(app, created)
    runner.invoke(app, ["token", "revoke", str(database), made["id"]])
    runner.invoke(app, ["db", "prune", str(database), "--older-than", "1d", "--events"])
    runner.invoke(app, ["db", "backup", str(database), str(database.with_name("copy.db"))])
    with closing(sqlite3.connect(database)) as connection:
        frames = [orjson.loads(row[0]) for row in connection.execute("SELECT frame FROM events ORDER BY seq")]
    assert [(frame["type"], frame["data"]["by"]) for frame in frames] == [
        (name, "carol")
        for name in (
            "account.changed", "token.created", "token.created", "token.revoked", "database.pruned", "database.copied",
        )
    ]  # fmt: skip
    assert runner.invoke(app, ["audit", "verify", str(database)]).exit_code == 0


def test_a_user_without_a_name_is_recorded_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    from toolgate.interfaces.cli.session import login_name

    def nobody() -> str:
        raise KeyError("uid not found")

    monkeypatch.setattr("getpass.getuser", nobody)
    assert login_name().startswith("uid:")
