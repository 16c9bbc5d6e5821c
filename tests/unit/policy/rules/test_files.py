"""Rules about files judge what a path leads to: allowed, forbidden, protected, sizes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tests.unit.kernel.samples import a_tool
from tests.unit.policy.asking import ask, policy, word

from toolgate.kernel.tool import RiskLevel, ToolDefinition


def test_a_tool_that_runs_elsewhere_is_judged_by_the_words_of_its_paths(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir()
    (tmp_path / "out").symlink_to("/etc")
    text = """
        tools:
          fetch: {allowed_paths: ["${WORKSPACE}/**"], forbidden_paths: ["${WORKSPACE}/closed/**"], decision: allow}
    """
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    words = {
        placement: [
            word(
                text,
                {"path": path},
                tool=ToolDefinition("fetch", schema, print, placement=placement),
                workspace=tmp_path,
            )
            for path in ("out/hosts", "closed/../a", "closed/a", "../a", "/etc/hosts")
        ]
        for placement in ("client", "inline")
    }
    assert words == {
        "client": ["allow", "allow", "deny", "deny", "deny"],
        "inline": ["deny", "allow", "deny", "deny", "deny"],
    }


@pytest.fixture
def place(tmp_path: Path) -> Path:
    home = tmp_path / "work"
    (home / "src").mkdir(parents=True)
    (home / "secret").mkdir()
    (home / "src" / "a.py").write_text("x" * 2000)
    (home / "secret" / "key").write_text("k")
    (tmp_path / "outside.txt").write_text("o")
    (home / "out").symlink_to(tmp_path / "outside.txt")
    (home / "in").symlink_to(home / "src" / "a.py")
    (home / "hidden").symlink_to(home / "secret" / "key")
    return home


def test_a_link_that_is_meant_itself_is_judged_by_where_it_stands(place: Path) -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string", "format": "link-path"}}}
    (place / "secret" / "link").symlink_to("../src")
    words = {
        placement: [
            word(
                LISTS,
                {"path": path},
                tool=ToolDefinition("act", schema, print, placement=placement),
                workspace=place,
            )
            for path in ("out", "hidden", "in", "secret/link", "out/../..", "src/a.py")
        ]
        for placement in ("inline", "client")
    }
    assert words == {
        "inline": ["allow", "allow", "allow", "deny", "deny", "allow"],
        "client": ["allow", "allow", "allow", "deny", "deny", "allow"],
    }


LISTS = "tools: {act: {decision: allow, allowed_paths: ['**'], forbidden_paths: ['secret/**']}}"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("src/a.py", "allow"),
        ("src/new/deep/file", "allow"),
        ("in", "allow"),
        ("./src/../src/a.py", "allow"),
        ("..data", "allow"),
        ("~", "allow"),
        ("out", "deny"),
        ("hidden", "deny"),
        ("secret/key", "deny"),
        ("secret/new", "deny"),
        ("secret", "deny"),
        ("src/../secret/key", "deny"),
        ("../outside.txt", "deny"),
        ("/etc/passwd", "deny"),
        ("/proc/self/environ", "deny"),
        ("", "deny"),
        ("a\0b", "deny"),
        (7, "deny"),
        (".env", "deny"),
        (".ENV", "deny"),
        (".git/config", "deny"),
    ],
)
def test_paths_are_judged_by_where_they_lead(place: Path, path: Any, expected: str) -> None:
    assert word(LISTS, {"path": path}, workspace=place) == expected


def test_a_hard_link_to_something_forbidden_is_forbidden(place: Path) -> None:
    os.link(place / "secret" / "key", place / "src" / "harmless")
    assert word(LISTS, {"path": "src/harmless"}, workspace=place) == "deny"


def test_a_fifo_is_refused_without_being_opened(place: Path) -> None:
    os.mkfifo(place / "src" / "pipe")
    assert word(LISTS, {"path": "src/pipe"}, workspace=place) == "deny"


@pytest.mark.parametrize(
    "arguments",
    [
        {"paths": ["src/a.py", "secret/key"]},
        {"options": {"target_file": "secret/key"}},
        {"items": [{"file": "secret/key"}]},
        {"path": {"file": "secret/key"}},
        {"nested": [[{"src": "secret/key"}]], "path": "src/a.py"},
    ],
)
def test_paths_are_found_wherever_they_stand(place: Path, arguments: dict[str, Any]) -> None:
    assert word(LISTS, arguments, workspace=place) == "deny"


def test_a_null_path_is_none(place: Path) -> None:
    tool = a_tool("act", input_schema={"properties": {"path": {"type": ["string", "null"]}}})
    assert word(LISTS, {"path": None}, tool=tool, workspace=place) == "allow"


def test_an_omitted_path_is_its_default(place: Path) -> None:
    def tool(default: str) -> Any:
        return a_tool("act", input_schema={"properties": {"path": {"default": default}, "n": {}}})

    assert word(LISTS, {}, tool=tool("src"), workspace=place) == "allow"
    assert word(LISTS, {"n": 1}, tool=tool("/etc"), workspace=place) == "deny"


def test_a_tool_without_a_known_path_is_refused_until_it_is_named(place: Path) -> None:
    assert word(LISTS, {"where": "src/a.py"}, workspace=place) == "deny"
    named = "tools: {act: {decision: allow, allowed_paths: ['src/**'], path_arguments: [where]}}"
    assert word(named, {"where": "src/a.py"}, workspace=place) == "allow"
    assert word(named, {"where": "out"}, workspace=place) == "deny"
    assert word(named, {}, workspace=place) == "allow"


def test_only_a_forbidden_list_leaves_the_rest_to_others(place: Path) -> None:
    text = "tools: {act: {forbidden_paths: [secret]}}"
    assert word(text, {"path": "src/a.py"}, workspace=place) == "allow"
    assert word(text, {"path": "secret/key"}, workspace=place) == "deny"


def test_naming_arguments_alone_makes_a_file_tool(place: Path) -> None:
    text = "tools: {act: {path_arguments: [where]}}"
    assert word(text, {"where": "src/a.py"}, workspace=place) == "allow"
    assert word(text, {"where": ".env"}, workspace=place) == "deny"


def test_what_leads_outside_is_asked_about_at_high_risk(place: Path) -> None:
    tool = a_tool("act", input_schema={"properties": {"where": {"type": "string", "format": "path"}}})
    ruling = ask("", {"where": "out"}, tool=tool, workspace=place)
    assert ruling.word == "ask"
    assert ruling.assessment is not None
    assert ruling.assessment.risk is RiskLevel.HIGH
    assert ruling.assessment.level == "full"
    assert word("", {"where": "src/a.py"}, tool=tool, workspace=place) == "allow"
    assert word("", {"where": "a\0"}, tool=tool, workspace=place) == "deny"
    assert word("", {"where": ["../outside.txt", "/etc/passwd"]}, tool=tool, workspace=place) == "ask"


def test_steering_files_may_be_read_and_not_written(place: Path) -> None:
    reader = a_tool("act", effects="read", input_schema={"properties": {"where": {"items": {"format": "path"}}}})
    writer = a_tool("act", input_schema={"properties": {"where": {"anyOf": [{"format": "path"}, True]}}})
    assert word("", {"where": "toolgate.yaml"}, tool=reader, workspace=place) == "allow"
    assert word("", {"where": "toolgate.yaml"}, tool=writer, workspace=place) == "deny"
    listed = "tools: {act: {category: read_only}}"
    assert word(listed, {"where": "toolgate.yaml"}, tool=writer, workspace=place) == "allow"


def test_protected_names_hold_for_every_tool_that_takes_paths(place: Path) -> None:
    text = "protected: [private, '!private/readme.md', '${WORKSPACE}/keys/**']\ntools: {other: {decision: allow}}"
    web = a_tool("act", input_schema={"properties": {"path": {"type": "string"}}})
    assert word(text, {"path": "Private/x"}, tool=web, workspace=place) == "deny"
    assert word(text, {"path": "private/readme.md"}, tool=web, workspace=place) == "allow"
    assert word(text, {"path": "keys/new"}, tool=web, workspace=place) == "deny"
    assert word(text, {"path": "/api/v1/users"}, tool=web, workspace=place) == "allow"
    assert word(text, {"path": "a\0"}, tool=web, workspace=place) == "allow"  # not known to be a file tool


def test_patterns_are_compared_with_what_directories_really_are(tmp_path: Path) -> None:
    real = tmp_path / "disk" / "me"
    (real / "dev").mkdir(parents=True)
    (tmp_path / "home").symlink_to(real)
    text = "tools: {act: {decision: allow, allowed_paths: ['$HOME/dev/**', '/', '$HOME/one.txt', './x/**', '!no.txt']}}"
    found = policy(text, workspace=tmp_path, home=tmp_path / "home")
    assert word(found, {"path": str(real / "dev" / "a")}) == "allow"
    assert word(found, {"path": str(tmp_path / "home" / "dev" / "a")}) == "allow"
    assert word(found, {"path": str(real / "one.txt")}) == "allow"
    assert word(found, {"path": "x/y"}) == "allow"
    assert word(found, {"path": "x/no.txt"}) == "deny"
    assert word(found, {"path": str(real / "other")}) == "deny"


def test_a_bare_name_allows_only_beneath_the_workspace(place: Path) -> None:
    text = "tools: {act: {decision: allow, allowed_paths: ['*.txt']}}"
    assert word(text, {"path": "src/deep/x.txt"}, workspace=place) == "allow"
    assert word(text, {"path": str(place.parent / "outside.txt")}, workspace=place) == "deny"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"path": "src/a.py"}, "deny"),  # 2,000 bytes on disk
        ({"path": "src/new", "content": "x" * 1024}, "allow"),
        ({"path": "src/new", "content": "ä" * 513}, "deny"),
        ({"path": "src/new", "more": {"deep": ["ok", "x" * 1025]}}, "deny"),
        ({"path": "src"}, "allow"),
        ({"path": "a\0"}, "deny"),
    ],
)
def test_sizes_count_bytes(place: Path, arguments: dict[str, Any], expected: str) -> None:
    text = "tools: {act: {decision: allow, max_file_size_mb: 0.0009765625}}"
    assert word(text, arguments, workspace=place) == expected


def test_sizes_of_arguments_alone() -> None:
    text = "tools: {act: {decision: allow, sizes: {max_argument_bytes: 3}}}"
    assert word(text, {"a": "abc", "n": 5}) == "allow"
    assert word(text, {"a": "abcd"}) == "deny"
    assert word("tools: {act: {decision: allow, sizes: {}}}", {"a": "abcd"}) == "allow"
