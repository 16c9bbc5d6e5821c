"""What strangers look for beside the code: addresses, a security policy, a release checklist, workflows."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest
from ruamel.yaml import YAML
from tests.docs.pages import ROOT

import toolgate

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOW: dict[str, Any] = YAML(typ="safe").load((ROOT / ".github/workflows/test.yml").read_text(encoding="utf-8"))
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def test_the_version_is_the_same_everywhere() -> None:
    assert PROJECT["version"] == toolgate.__version__


def test_the_project_says_where_it_lives() -> None:
    assert {"Source", "Documentation", "Changelog", "Issues", "Security"} <= set(PROJECT["urls"])
    for address in PROJECT["urls"].values():
        assert address.startswith(PROJECT["urls"]["Source"])


@pytest.mark.parametrize("label", ["Changelog", "Documentation", "Security"])
def test_an_address_of_a_file_names_one_that_is_there(label: str) -> None:
    assert (ROOT / PROJECT["urls"][label].partition("/blob/main/")[2]).is_file()


@pytest.mark.parametrize("name", ["SECURITY.md", "CODE_OF_CONDUCT.md", "RELEASING.md", "CHANGELOG.md", "LICENSE"])
def test_a_stranger_finds_it_from_the_first_pages(name: str) -> None:
    first = "".join((ROOT / page).read_text(encoding="utf-8") for page in ("README.md", "CONTRIBUTING.md"))
    assert f"({name})" in first


def test_the_workflow_runs_our_two_commands_on_both_releases() -> None:
    matrix = WORKFLOW["jobs"]["debian"]["strategy"]["matrix"]
    assert matrix["command"] == ["make test", "make test-real"]
    assert matrix["release"] == ["bookworm", "trixie"]
    assert WORKFLOW["jobs"]["debian"]["env"]["CI"] == "true"


@pytest.mark.parametrize("page", ["RELEASING.md", "CONTRIBUTING.md"])
def test_every_make_target_that_is_named_exists(page: str) -> None:
    named = set(re.findall(r"`make ([a-z-]+)", (ROOT / page).read_text(encoding="utf-8")))
    assert named
    assert named <= TARGETS
