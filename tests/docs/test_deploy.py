"""The files in `deploy` fit the project: every command they run exists, and every file they take is there."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from typing import Any

import click
import pytest
import typer.main
from ruamel.yaml import YAML
from tests.docs.pages import ROOT

from toolgate.interfaces.cli.app import app

DEPLOY = ROOT / "deploy"
COMPOSE: dict[str, Any] = YAML(typ="safe").load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
DOCKERFILE = re.sub(r"\\\n\s*", "", (DEPLOY / "Dockerfile").read_text(encoding="utf-8"))
INSTRUCTIONS = [line.split(" ", 1) for line in DOCKERFILE.splitlines() if line and not line.startswith("#")]


def commands() -> Iterator[list[str]]:
    """Yield every `toolgate` command line in the folder, without the program's name."""
    for service in COMPOSE["services"].values():
        if service.get("command", [""])[0] == "toolgate":
            yield service["command"][1:]
    for unit in (DEPLOY / "systemd").glob("*.service"):
        line = re.search(r"^ExecStart=(\S+) (.*)", unit.read_text(encoding="utf-8"), re.MULTILINE)
        assert line is not None
        assert line[1] == "/opt/toolgate/bin/toolgate"
        yield shlex.split(line[2].replace("%i", "8642"))
    yield json.loads(dict(INSTRUCTIONS)["CMD"])[1:]


def test_the_commands_are_found() -> None:
    assert {words[0] for words in commands()} == {"db", "serve", "worker"}


@pytest.mark.parametrize("line", sorted({shlex.join(words) for words in commands()}))
def test_every_command_exists(line: str) -> None:
    words = shlex.split(line)
    command: click.Command = typer.main.get_command(app)  # type: ignore[assignment]  # typer's own copy of click
    context = command.make_context("toolgate", list(words), resilient_parsing=False)
    while isinstance(command, click.Group):
        name, command, rest = command.resolve_command(context, context.args or words)  # type: ignore[assignment]
        context = command.make_context(name, rest, parent=context)


def test_the_image_takes_files_that_are_there() -> None:
    copied = [words.split()[:-1] for kind, words in INSTRUCTIONS if kind == "COPY" and "--from" not in words]
    allowed = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    for name in (name for names in copied for name in names):
        assert (ROOT / name).exists()
        assert f"!{name}" in allowed


def test_the_image_has_a_command_a_health_check_and_a_sandbox() -> None:
    assert {"CMD", "HEALTHCHECK", "USER"} <= {kind for kind, _ in INSTRUCTIONS}
    assert any("bubblewrap" in words for kind, words in INSTRUCTIONS if kind == "RUN")


def test_compose_builds_that_image_from_the_checkout() -> None:
    build = COMPOSE["x-toolgate"]["build"]
    assert (DEPLOY / build["context"]).resolve() == ROOT
    assert (ROOT / build["dockerfile"]).samefile(DEPLOY / "Dockerfile")


def test_compose_asks_only_servers_for_their_health() -> None:
    ours = {name: one for name, one in COMPOSE["services"].items() if "build" in one}
    disabled = {name for name, one in ours.items() if one.get("healthcheck", {}).get("disable")}
    assert set(ours) - disabled == {"server"}
