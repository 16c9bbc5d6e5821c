"""Paths, commands, sizes and risks, before a client gets a call."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toolgate.agent_tools import CommandValidator, PathValidator, RiskAssessor, RiskLevel, SizeLimiter


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "src").mkdir(parents=True)
    (root / "src" / "main.py").write_text("x")
    (root / ".env").write_text("x")
    (tmp_path / "secret").write_text("x")
    (root / "out").symlink_to("../secret")
    return root


@pytest.fixture
def paths(root: Path) -> Iterator[PathValidator]:
    made = PathValidator(root)
    yield made
    made.close()


def test_paths_inside_are_valid(paths: PathValidator, root: Path) -> None:
    assert paths.validate_read_path("src/main.py").value == str(root / "src" / "main.py")
    assert paths.validate_write_path("src/new.py").is_valid
    assert paths.validate_write_path(str(root / "src" / "main.py"))
    assert paths.validate_directory_path(".")


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "out", ".env", ".ENV", "", "a\0b", "src/../../secret"])
def test_paths_that_lead_out_or_to_secrets_are_not(paths: PathValidator, path: str) -> None:
    for validate in (paths.validate_read_path, paths.validate_write_path, paths.validate_directory_path):
        answer = validate(path)
        assert not answer
        assert answer.error


def test_what_is_of_another_kind_is_not_valid(paths: PathValidator, root: Path) -> None:
    assert "does not exist" in str(paths.validate_read_path("missing").error)
    assert "directory" in str(paths.validate_write_path("src").error)
    assert "file" in str(paths.validate_directory_path("src/main.py").error)
    assert sorted(path.name for path in root.iterdir()) == [".env", "out", "src"]


def test_commands_are_known_or_refused(root: Path) -> None:
    commands = CommandValidator(root=str(root))
    assert commands.validate_command("npm", ["test"])
    assert commands.validate_command("git", ["push"])
    assert not commands.validate_command_safety("git", ["push"])
    assert commands.validate_command_safety("git", ["status"])
    for command, args in (("rm", ["-rf", "/"]), ("./ls", []), ("bash", ["-c", "id"]), ("cat", [".env"])):
        assert not commands.validate_command(command, args)
        assert not commands.validate_command_safety(command, args)
    assert "denied" in str(commands.validate_command("git", ["config", "--unset", "user.name"]).error)


def test_sizes_count_bytes() -> None:
    sizes = SizeLimiter(max_write_bytes=4, max_timeout=10)
    assert sizes.validate_write_size("abcd").value == 4
    assert not sizes.validate_write_size("äää")
    assert sizes.validate_write_size(b"1234")
    assert not sizes.validate_write_size(5)  # type: ignore[arg-type]  # hostile
    assert sizes.validate_timeout(None)
    assert sizes.validate_timeout(10)
    for timeout in (0, -1, 11, float("nan"), True, "3"):
        assert not sizes.validate_timeout(timeout)  # type: ignore[arg-type]  # hostile


LOW, MEDIUM, HIGH = RiskLevel.LOW, RiskLevel.MEDIUM, RiskLevel.HIGH
RISKS: list[tuple[str, dict[str, Any], RiskLevel]] = [
    ("read_file", {"path": "src/main.py"}, LOW),
    ("read_file", {"path": ".env"}, HIGH),
    ("read_file", {"path": "../secret"}, HIGH),
    ("read_file", {"path": 3}, HIGH),
    ("list_directory", {"path": "src"}, LOW),
    ("list_directory", {}, LOW),
    ("write_file", {"path": "src/main.py", "content": "x"}, HIGH),
    ("execute_command", {"command": "ls", "args": ["-la"]}, LOW),
    ("execute_command", {"command": "git", "args": ["status"]}, LOW),
    ("execute_command", {"command": "npm", "args": ["test"], "timeout": 30}, MEDIUM),
    ("execute_command", {"command": "python", "args": ["-m", "pytest"]}, MEDIUM),
    ("execute_command", {"command": "git", "args": ["push"]}, MEDIUM),
    ("execute_command", {"command": "cat", "args": [".env"]}, HIGH),
    ("execute_command", {"command": "cat", "args": ["/etc/passwd"]}, HIGH),
    ("execute_command", {"command": "frobnicate"}, HIGH),
    ("execute_command", {"command": "./ls"}, HIGH),
    ("execute_command", {"command": "git", "args": ["clean"]}, HIGH),
    ("execute_command", {"command": ["ls"]}, HIGH),
    ("execute_command", {}, HIGH),
    ("launch_missiles", {}, HIGH),
]


@pytest.mark.parametrize("rooted", [True, False])
def test_risks_follow_from_what_is_touched(root: Path, rooted: bool) -> None:
    assessor = RiskAssessor(root=str(root) if rooted else None)
    found = [(name, params, assessor.assess_tool_risk(name, params)) for name, params, _ in RISKS]
    assert found == RISKS


def test_answers_take_time_by_risk() -> None:
    assessor = RiskAssessor()
    assert [assessor.get_timeout_for_risk_level(level) for level in ("LOW", "MEDIUM", "high")] == [0, 300, 600]
