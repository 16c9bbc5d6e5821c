"""`toolgate init` and `toolgate doctor`."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner

from toolgate.adapters.runners.sandbox import Sandbox
from toolgate.adapters.sqlite.place import workspace_database
from toolgate.errors import SandboxError
from toolgate.interfaces.cli.app import app
from toolgate.policy import load_policy
from toolgate.policy.profiles import PROFILES
from toolgate.ports.confinement import Confined, Finished


def run(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(map(str, arguments)))
    return result.exit_code, result.output


@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_is_written_and_valid(tmp_path: Path, profile: str) -> None:
    code, output = run("init", tmp_path, "--profile", profile, "--json")
    assert code == 0
    made = orjson.loads(output)["made"]
    assert {"toolgate.yaml", "toolgate.db"} <= {*made}
    assert ("toolgate.commands.yaml" in made) is (profile != "locked")
    assert load_policy(tmp_path, workspace=tmp_path).revision


def test_what_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / "toolgate.yaml").write_text("version: 1\n")
    code, output = run("init", tmp_path)
    assert code == 0
    assert "was there already" in output
    assert (tmp_path / "toolgate.yaml").read_text() == "version: 1\n"
    assert not (tmp_path / "toolgate.commands.yaml").exists()


def test_a_folder_that_cannot_be_used_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert run("init", tmp_path / "file" / "inner")[0] == 1


def test_the_doctor_tries_the_sandbox(tmp_path: Path) -> None:
    assert run("init", tmp_path, "--profile", "locked")[0] == 0
    code, output = run("doctor", tmp_path, "--json")
    found = {one["what"]: one for one in orjson.loads(output)["findings"]}
    assert code == 0
    assert {"sandbox bubblewrap", "sandbox landlock", "policy", "database"} <= {*found}


def test_the_doctor_tries_interpreter_and_workspace_in_the_sandbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    _, output = run("doctor", tmp_path, "--json")
    assert not [one for one in orjson.loads(output)["findings"] if one["what"].startswith("sandbox workspace")]

    def refuse(_self: Sandbox, confined: Confined, **_: object) -> Finished:
        if confined.argv[0] == sys.executable:
            raise SandboxError("user 1 cannot enter /x")
        return Finished(exit_code=2, stdout=b"", stderr=b"Permission denied")

    monkeypatch.setattr(Sandbox, "run", refuse)
    _, output = run("doctor", tmp_path, "--json")
    found = {one["what"]: one["detail"] for one in orjson.loads(output)["findings"]}
    assert found["sandbox interpreter"] == "user 1 cannot enter /x"
    assert found["sandbox workspace"] == "Permission denied"


def finding(folder: Path) -> tuple[bool, str]:
    found = {one["what"]: one for one in orjson.loads(run("doctor", folder, "--json")[1])["findings"]}
    return found["accounts"]["is_fine"], found["accounts"]["detail"]


def test_the_doctor_says_once_what_writes_a_policy(tmp_path: Path) -> None:
    found = {one["what"]: one for one in orjson.loads(run("doctor", tmp_path, "--json")[1])["findings"]}
    assert found["policy"]["detail"].count("`toolgate init` writes a first one") == 1


def test_the_doctor_names_accounts_that_do_not_count(tmp_path: Path) -> None:
    assert run("init", tmp_path, "--profile", "locked")[0] == 0
    database = workspace_database(tmp_path)
    assert finding(tmp_path) == (True, "each account and token is as it was last changed")
    with closing(sqlite3.connect(database)) as connection:
        for number in range(6):
            added = f"INSERT INTO accounts (name, kind, roles) VALUES ('eve{number}', 'admin', '{{}}')"
            connection.execute(added)
        connection.commit()
    is_fine, detail = finding(tmp_path)
    assert (is_fine, "account 'eve0'" in detail, "and 1 more count as absent" in detail) == (False, True, True)
    Path(f"{database}.key").write_text("nonsense")
    assert not finding(tmp_path)[0]


def test_the_doctor_says_what_is_missing(tmp_path: Path) -> None:
    code, output = run("doctor", tmp_path)
    assert code == 1
    assert "PROBLEM" in output
    assert "toolgate init" in output


def test_the_doctor_tells_a_broken_policy_from_none(tmp_path: Path) -> None:
    (tmp_path / "toolgate.yaml").write_text("versoin: 1\n", encoding="utf-8")
    _, output = run("doctor", tmp_path, "--json")
    [detail] = [one["detail"] for one in orjson.loads(output)["findings"] if one["what"] == "policy"]
    assert "versoin" in detail
    assert "toolgate init" not in detail


def test_the_doctor_tries_it_with_the_policys_own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("init", tmp_path)[0] == 0
    (tmp_path / ".env").write_text("TOKEN=canary")
    tried: list[Confined] = []

    def note(_self: Sandbox, confined: Confined, **_: object) -> Finished:
        tried.append(confined)
        return Finished(exit_code=0, stdout=b"", stderr=b"")

    monkeypatch.setattr(Sandbox, "run", note)
    assert "sandbox workspace" not in run("doctor", tmp_path, "--json")[1]
    _, reading, writing, *_ = tried
    assert reading.readable == writing.writable == (str(tmp_path),)
    assert str(tmp_path / ".env") in {*reading.hidden} & {*writing.hidden}


def test_the_doctor_says_that_a_workspace_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("init", tmp_path, "--profile", "locked")[0] == 0
    monkeypatch.setattr("toolgate.guards.hidden.MAX_NAMES", 0)
    _, output = run("doctor", tmp_path, "--json")
    found = {one["what"]: one["detail"] for one in orjson.loads(output)["findings"]}
    assert "too many to find the protected ones" in found["sandbox workspace"]


class Chosen:
    """A sandbox that came to this backend; None where none holds."""

    def __init__(self, name: str | None) -> None:
        self.name = name or ""

    def choose(self) -> Chosen:
        if not self.name:
            raise SandboxError("No sandbox can be used here.")
        return self

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("namespaces", "backend", "is_outside"),
    [(True, "landlock", False), (False, "landlock", True), (False, "bubblewrap", False), (False, None, False)],
)
def test_the_policy_is_kept_outside_where_landlock_has_no_namespaces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, namespaces: bool, backend: str | None, is_outside: bool
) -> None:
    monkeypatch.setattr("toolgate.adapters.runners.sandbox.landlock.has_namespaces", lambda _user: namespaces)
    monkeypatch.setattr("toolgate.adapters.runners.sandbox.Sandbox", lambda: Chosen(backend))
    assert run("init", tmp_path, "--profile", "locked")[0] == 0
    assert (tmp_path / "toolgate.yaml").exists() is not is_outside
    assert load_policy(tmp_path, workspace=tmp_path).revision
