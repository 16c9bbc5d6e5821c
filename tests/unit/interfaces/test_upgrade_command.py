"""`toolgate db upgrade` and `db status` on a database from before rows carried marks."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner

import toolgate
from toolgate.adapters import sealing
from toolgate.interfaces.cli.app import app
from toolgate.interfaces.server.serve import _warn_of_accounts


@pytest.fixture(autouse=True)
def no_key_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(sealing.ENVIRONMENT, raising=False)


def write(database: Path, *statements: str) -> None:
    with closing(sqlite3.connect(database)) as connection:
        for sql in statements:
            connection.execute(sql)
        connection.commit()


def run(*words: object) -> str:
    return CliRunner().invoke(app, [str(word) for word in words]).output


@toolgate.tool(risk_level="medium")
def pay(amount: int) -> int:
    return amount


@pytest.fixture
def before_marks(database: Path) -> Path:
    """A file with a question, a grant, an account and a mode that carry no marks."""
    with toolgate.open(f"sqlite:///{database}", tools=[pay]) as gate:
        gate.sync.call("pay", {"amount": 1}, wait=False)
        asked = gate.sync.call("pay", {"amount": 2}, wait=False)
        gate.sync.decide(str(asked.approval_id), "approve", by="ann", remember=toolgate.Remember(uses=5))
        gate.sync.call("pay", {"amount": 2}, call_id=asked.call_id)  # joins it: until it has ended, its yes counts
    write(
        database,
        "UPDATE approval_requests SET detail=json_remove(detail, '$.mark')",
        "UPDATE grants SET detail=json_remove(detail, '$.mark')",
        "INSERT INTO accounts (name, kind, roles) VALUES ('ann', 'person', '{}')",
        "INSERT INTO settings (name, value) VALUES ('mode', 'NORMAL')",
    )
    return database


def test_an_upgrade_says_what_counts_no_more(before_marks: Path) -> None:
    said = run("db", "upgrade", before_marks)
    assert "1 approvals that wait or were not used yet carry no mark" in said
    assert "1 grants carry no mark and cover nothing" in said
    assert "`toolgate audit verify` names them" in said
    assert "Everybody is in LOCKDOWN: `toolgate mode` says why" in said
    assert run("db", "upgrade", before_marks).count("\n") == 1, "it is said once"


def test_an_upgrade_counts_for_scripts_what_counts_no_more(before_marks: Path) -> None:
    assert orjson.loads(run("db", "upgrade", before_marks, "--json"))["unmarked"] == {"approvals": 1, "grants": 1}


def test_a_server_that_finds_unmarked_accounts_names_the_command(
    before_marks: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sql = "INSERT INTO accounts (name, kind, roles) VALUES ('a{}', 'person', '{{}}')"
    write(before_marks, *(sql.format(number) for number in range(20)))
    _warn_of_accounts(f"sqlite:///{before_marks}")
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 11
    assert said[-1].startswith("21 accounts and tokens differ from the record")
    assert "`toolgate db upgrade` takes them over" in said[-1]


@pytest.mark.parametrize(("revision", "says"), [("0008", "Run `toolgate db upgrade`"), ("9999", "a newer Toolgate")])
def test_status_of_another_schema_counts_nothing(database: Path, revision: str, says: str) -> None:
    write(database, f"UPDATE alembic_version SET version_num='{revision}'")
    said = run("db", "status", database)
    assert says in said
    assert "events" not in said
    assert orjson.loads(run("db", "status", database, "--json"))["events"] is None
