"""Every command finds its database in the same way: named by path or URL, as an argument, an option or a variable."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from tests.integration.programs import Ended, here

import toolgate
from toolgate.interfaces.cli.app import app
from toolgate.kernel.context import Context


@toolgate.tool(risk_level="medium")
async def send(to: str) -> str:
    return to


@pytest.fixture
def folder(tmp_path: Path, empty_database: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with `toolgate.db` and, beside it, `other.db`, in which two questions wait."""
    for name in ("toolgate.db", "other.db"):
        shutil.copy(empty_database, tmp_path / name)
        shutil.copy(f"{empty_database}.key", tmp_path / f"{name}.key")

    async def ask() -> None:
        async with toolgate.open(tmp_path / "other.db", tools=[send]) as gate:
            for project in ("default", "shop"):
                await gate.call("send", {"to": project}, context=Context(principal="bot", project=project), wait=False)

    asyncio.run(ask())
    monkeypatch.chdir(tmp_path)
    for variable in ("TOOLGATE_DATABASE", "TOOLGATE_SERVER", "TOOLGATE_TOKEN"):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


def waiting(*words: object) -> int:
    told = here("inbox", *words, "--json")
    assert told.code == 0, told.err
    return len(told.json["pending"])


def test_a_database_is_named_by_argument_option_variable_or_not_at_all(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert waiting() == 0  # toolgate.db, here
    for name in ("other.db", "sqlite:///other.db", f"{folder}/other.db", f"sqlite:///{folder}/other.db"):
        assert waiting(name) == waiting("--database", name) == waiting(f"--database={name}") == 2
    monkeypatch.setenv("TOOLGATE_DATABASE", "other.db")
    assert waiting() == 2
    assert waiting("toolgate.db") == waiting("--database", "toolgate.db") == 0  # what is said comes first


READING = [
    ("audit", "verify"), ("db", "status"), ("db", "vacuum"), ("db", "rekey"), ("db", "prune", "--older-than", "1d"),
    ("token", "list"), ("grants", "list"), ("history",), ("recover",), ("inbox", "--json"), ("db", "backup", "copy.db"),
    ("show", "gone"), ("approve", "gone"), ("deny", "gone"), ("reject", "gone"), ("edit", "gone", "--arguments", "{}"),
    ("undo", "gone"), ("undo-run", "gone"), ("watch", "--count", "1"), ("token", "create", "ann", "--kind", "person"),
    ("token", "revoke", "gone"), ("token", "link", "ann"), ("grants", "revoke", "gone"), ("recover", "gone"),
]  # fmt: skip


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_every_command_refuses_a_path_without_a_database_and_makes_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("TOOLGATE_DATABASE", "mistyped.db")
    told = here(*words)
    assert told.code == 1
    assert "no database at mistyped.db" in told.err
    assert "other.db, toolgate.db" in told.err
    assert not (folder / "mistyped.db").exists()
    named = here(*words, "--database", "sqlite:///gone.db")
    assert "no database at gone.db" in named.err


@pytest.mark.parametrize("words", [("db", "upgrade"), ("doctor",), ("policy", "simulate", "policy.yaml")], ids=" ".join)
def test_the_others_hear_the_variable_too(
    folder: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    (folder / "policy.yaml").write_text("version: 1\n", encoding="utf-8")
    monkeypatch.setenv("TOOLGATE_DATABASE", "sqlite:///named/a.db")
    (folder / "named").mkdir()
    told = here(*words)
    if words == ("db", "upgrade"):
        assert (folder / "named" / "a.db").exists()
    else:
        assert "no database at named/a.db" in told.out + told.err


def test_every_command_that_takes_a_database_takes_the_option() -> None:
    import typer

    def leaves(group: object, name: str = "toolgate") -> list[tuple[str, list[str]]]:
        commands = getattr(group, "commands", None)
        if commands is None:
            return [(name, [option for one in group.params for option in one.opts])]  # type: ignore[attr-defined]
        return [leaf for word, one in commands.items() for leaf in leaves(one, f"{name} {word}")]

    without = {name for name, options in leaves(typer.main.get_command(app)) if "--database" not in options}
    assert without == {
        "toolgate demo", "toolgate db key", "toolgate db import",  # nothing, a file, two
        "toolgate db move", "toolgate db list",  # a file and where to, all of them
        "toolgate runner", "toolgate call", "toolgate chat",  # a server
        "toolgate policy check", "toolgate policy explain", "toolgate policy test", "toolgate policy diff",
    }  # fmt: skip


def test_an_import_goes_where_the_variable_says(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLGATE_DATABASE", "other.db")
    assert "named by its URL: postgresql://" in here("db", "import", "toolgate.db").err


@pytest.mark.parametrize("given", ["other.db", "sqlite:///other.db", "postgresql://db/toolgate"])
def test_the_doctor_takes_a_folder_and_says_how_to_name_a_database(folder: Path, given: str) -> None:
    assert "Name a database with --database" in here("doctor", given).err


def test_a_database_named_twice_or_a_server_beside_it_is_refused(folder: Path) -> None:
    twice = here("inbox", "other.db", "--database", "toolgate.db")
    both = here("inbox", "--server", "http://127.0.0.1:1", "--database", "other.db")
    wrong = here("inbox", "--server", "127.0.0.1:8642")
    assert "named twice" in twice.err
    assert "not both" in both.err
    assert "begins with http" in wrong.err
    assert (twice.code, both.code, wrong.code) == (2, 2, 2)
    assert "server's address, not a database" in here("db", "status", "http://127.0.0.1:1").err


def test_recover_tells_a_database_from_a_call(folder: Path) -> None:
    assert "unknown outcome" in here("recover", "other.db").out
    settling = ("--happened", "--by", "ann", "--reason", "seen")
    assert "not among the unknown" in here("recover", "some-call", *settling).err
    assert "not among the unknown" in here("recover", "other.db", "some-call", *settling).err


def unreachable(told: Ended) -> bool:
    return told.code == 1 and "127.0.0.1:9" in told.err


@pytest.mark.parametrize(
    "words",
    [("inbox", "--json"), ("history",), ("show", "gone"), ("undo", "gone"), ("grants", "list"), ("call", "look"),
     ("chat", "hello"), ("runner", "--profile", "readonly", "--state", "state")],
    ids=lambda words: words[0],
)  # fmt: skip
def test_the_variable_of_the_server_is_heard(
    folder: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("TOOLGATE_TOKEN", "tg_x")
    monkeypatch.setenv("TOOLGATE_SERVER", "https://nowhere.invalid")
    monkeypatch.setattr("toolgate.interfaces.cli.backend_remote.RETRY_S", 0.0)
    if words[0] == "runner":
        monkeypatch.setenv("TOOLGATE_SERVER", "not an address")
    told = here(*words)
    assert told.code == 1
    assert "nowhere.invalid" in told.err or "address" in told.err
    monkeypatch.setenv("TOOLGATE_TOKEN", "tg_x")
    monkeypatch.setenv("TOOLGATE_SERVER", "nowhere")
    assert "http" in here(*words).err
