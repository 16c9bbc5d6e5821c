"""What a policy compiles to: one stance per tool, and the edges that tools and runners apply."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.unit.kernel.samples import a_tool
from tests.unit.policy.asking import policy, word

from toolgate.errors import PolicyError
from toolgate.policy import FilePolicy, load_policy

TEXT = """
    protected: [vault]
    tools:
      write:
        allowed_paths: ["${WORKSPACE}/src/**", "/usr/*/x", "/nowhere/**"]
        forbidden_paths: [scratch]
        max_file_size_mb: 2
      twice: {category: big, sizes: {max_file_mb: 1}}
      plain: {decision: allow}
    categories: {big: {sizes: {max_file_mb: 3}}}
    commands: {git: {executable: /usr/bin/git}}
"""


@pytest.fixture
def found(tmp_path: Path) -> FilePolicy:
    (tmp_path / "src").mkdir()
    made = policy(TEXT, workspace=tmp_path)
    for name in ("write", "twice", "plain"):
        made.stance(a_tool(name))
    return made


@pytest.mark.parametrize(
    ("tool", "path", "refusal"),
    [
        ("write", "src/a", None),
        ("write", "other", "not in allowed paths"),
        ("write", "src/scratch/a", "is forbidden"),
        ("write", "src/vault/a", "is protected"),
        ("write", "src/.env", "is protected"),
        ("write", "../x", "outside the workspace"),
        ("plain", "other", None),
        ("unknown", "vault", "is protected"),
    ],
)
def test_the_edges_judge_paths_as_the_rules_do(found: FilePolicy, tool: str, path: str, refusal: str | None) -> None:
    edges = found.edges()
    said = edges.judge_path(tool, edges.workspace.look(path), "write")
    assert (said is None) if refusal is None else (said is not None and refusal in said)


def test_the_edges_carry_sizes_and_commands(found: FilePolicy) -> None:
    edges = found.edges()
    sizes = {name: edges.max_file_bytes(name) for name in ("write", "twice", "plain", "unknown")}
    assert sizes == {"write": 2 * 1024**2, "twice": 1024**2, "plain": None, "unknown": None}
    assert list(edges.commands) == ["git"]
    assert edges.hosts.allow == ("*",)


def test_one_layers_hosts_are_the_edges_hosts() -> None:
    assert policy("hosts: {allow: [a.org]}").edges().hosts.allow == ("a.org",)


def test_the_roots_are_the_workspace_and_what_is_allowed_elsewhere(found: FilePolicy, tmp_path: Path) -> None:
    assert {root.path for root in found.workspace.roots} == {str(tmp_path), str(tmp_path / "src"), "/usr"}


def test_a_whole_directory_may_be_allowed(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (tmp_path / "work").mkdir()
    text = f"tools: {{act: {{decision: allow, allowed_paths: ['{other}', '{other}/file']}}}}"
    made = policy(text, workspace=tmp_path / "work")
    assert word(made, {"path": str(other)}) == "allow"
    assert word(made, {"path": str(other / "file")}) == "allow"
    assert word(made, {"path": str(other / "more")}) == "deny"


def test_an_inspector_that_fails_denies(tmp_path: Path) -> None:
    made = policy("tools: {act: {decision: allow, allowed_paths: ['**']}}", workspace=tmp_path / "gone")
    assert word(made, {"path": "a"}) == "deny"


def test_programs_are_looked_for_in_the_directories_that_all_files_name(tmp_path: Path) -> None:
    work = tmp_path / "wo[r]k*"
    for directory in (work / ".venv" / "bin", work / "bin", tmp_path / "workx" / "bin", tmp_path / "tools" / "bin"):
        directory.mkdir(parents=True)
    (work / "floor.yaml").write_text(f'tool_directories: ["${{WORKSPACE}}/bin", {tmp_path}/to*/bin/]\n')
    (work / "toolgate.yaml").write_text(
        "version: 1\ninclude: [floor.yaml, plain.yaml]\n"
        f'tool_directories: [{tmp_path}/to*/bin, "${{WORKSPACE}}/.venv/bin", "${{WORKSPACE}}/bin"]\n'
    )
    (work / "plain.yaml").write_text("tools: {}\n")
    found = load_policy(work, workspace=work).table
    assert found.places() == ([str(work / "bin")], [str(tmp_path / "tools" / "bin")])


@pytest.mark.parametrize(
    ("directory", "words"),
    [
        ("bin", "an absolute path"),
        ("/", "an absolute path"),
        ("${WORKSPACE}/../bin", "an absolute path"),
        ("~/bin", "write $HOME"),
        ("$PATH", "is not known here"),
        ("$HOME", "holds programs and nothing else"),
        ("${WORKSPACE}/", "holds programs and nothing else"),
        ("/home/*", "holds programs and nothing else"),
        ("/opt/**/bin", "stands for one name"),
        ("/opt/[ab]/bin", "stands for one name"),
    ],
)
def test_a_tool_directory_that_is_none_is_refused_with_its_place(tmp_path: Path, directory: str, words: str) -> None:
    with pytest.raises(PolicyError, match=re.escape(words)) as refused:
        policy(f'tool_directories: [/opt/x/bin, "{directory}"]', workspace=tmp_path)
    assert "tool_directories" in str(refused.value)


def test_the_hosts_of_several_layers_are_told_together(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("hosts: {allow: ['*']}")
    (tmp_path / "toolgate.yaml").write_text("include: [base.yaml]\nhosts: {allow: [a.org]}")
    told = load_policy(tmp_path / "toolgate.yaml").hosts.told()
    assert "; of these only " in told
    assert "a.org (ports 80, 443)" in told
    assert "any public host (ports 80, 443)" in told
