"""The file of a project adds to the policy of all, and what would take from it is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.kernel.samples import a_tool

from toolgate.errors import PolicyError
from toolgate.kernel.context import Context, Mode
from toolgate.policy.compile import FilePolicy
from toolgate.policy.examples import ruling_of
from toolgate.policy.loader import PolicySource, load_policy

BASE = """
tools:
  act:
    decision: allow
    examples: [{arguments: {n: 1}, expect: allow}]
categories: {grave: {decision: ask}}
"""


def load(folder: Path, base: str = BASE, **projects: str) -> FilePolicy:
    (folder / "toolgate.yaml").write_text(base)
    own = folder / "projects"
    own.mkdir(exist_ok=True)
    for name, text in projects.items():
        (own / f"{name}.yaml").write_text(text)
    return load_policy(folder, projects=own)


def test_the_examples_of_a_projects_file_are_checked_under_both(tmp_path: Path) -> None:
    strict = "tools: {act: {decision: deny, examples: [{expect: deny}]}}"
    found = load(tmp_path, shop=strict)  # though the policy of all expects its own example to be allowed
    assert found.in_project("shop") is found.projects["shop"]
    assert found.in_project("other") is found
    with pytest.raises(PolicyError, match="expects ask, but the policy says deny"):
        load(tmp_path, shop=strict.replace("expect: deny", "expect: ask"))


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("version: 1\nprotected: ['!.env']", "shop.yaml:2:1: protected"),
        ("{protected: ['!.env']}", "shop.yaml:1:1: protected"),
        ("commands:\n  ls: {flags: {}}", "shop.yaml:1:1: commands"),
        ("tools:\n  act: {category: harmless}", "shop.yaml:2:1: tools.act.category"),
    ],
)
def test_what_would_take_from_the_policy_of_all_is_refused(tmp_path: Path, text: str, where: str) -> None:
    with pytest.raises(PolicyError) as caught:
        load(tmp_path, shop=text)
    (problem,) = caught.value.problems
    assert f"{Path(problem.file).name}:{problem.line}:{problem.column}: {problem.path}" == where
    assert "only adds" in problem.message


@pytest.mark.parametrize("name", ["shop.yml", "README.md", "_system.yaml", "private:x.yaml", f"{'x' * 129}.yaml"])
def test_a_file_that_is_no_projects_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "projects").mkdir()
    (tmp_path / "projects" / name).write_text("")
    with pytest.raises(PolicyError, match="is not the policy of a project"):
        load(tmp_path)


def test_folders_and_hidden_files_are_left_alone_and_files_may_share(tmp_path: Path) -> None:
    shared = tmp_path / "projects" / "shared"
    shared.mkdir(parents=True)
    (shared / "strict.yaml").write_text("tools: {act: {decision: ask}}")
    (tmp_path / "projects" / ".swp").write_text("x")
    text = "include: [shared/strict.yaml, ../toolgate.yaml]"
    found = load(tmp_path, shop=text, blog="include: [shared/strict.yaml]")
    assert sorted(found.projects) == ["blog", "shop"]
    assert len(found.projects["shop"].documents) == 3
    broken = load(tmp_path, shop=text)
    assert broken.projects["shop"].revision != broken.revision


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "projects").mkdir()
    (tmp_path / "projects" / "shop.yaml").symlink_to(tmp_path / "nowhere")
    with pytest.raises(PolicyError, match=r"shop\.yaml cannot be read"):
        load(tmp_path)


def test_a_file_that_comes_is_a_change(tmp_path: Path) -> None:
    load(tmp_path, shop="")
    source = PolicySource(tmp_path, projects=tmp_path / "projects")
    source.load()
    assert not source.has_changed()
    (tmp_path / "projects" / "blog.yaml").write_text("default: deny")
    assert source.has_changed()
    assert sorted(source.load().projects) == ["blog", "shop"]
    assert not source.has_changed()


ENTRIES = st.sampled_from(
    [
        "{decision: allow}",
        "{decision: ask}",
        "{decision: deny}",
        "{approval: {level: full, quorum: 2}}",
        "{arguments: [{field: n, above: 1, then: ask, approval: {including: [lead]}}]}",
        "{arguments: [{field: n, above: 1, then: deny}]}",
        "{modes: {allowed: [NORMAL]}}",
        "{roles: {allowed: [x]}}",
    ]
)


@given(base=ENTRIES, own=ENTRIES, n=st.integers(0, 3))
def test_what_the_policy_of_all_asks_or_denies_stays_so(
    tmp_path_factory: pytest.TempPathFactory, base: str, own: str, n: int
) -> None:
    found = load(tmp_path_factory.mktemp("p"), f"tools: {{act: {base}}}", shop=f"tools: {{act: {own}}}")
    tool, context = a_tool("act"), Context(project="shop")
    before = ruling_of(found, tool, {"n": n}, context, Mode.NORMAL)
    after = ruling_of(found.in_project("shop"), tool, {"n": n}, context, Mode.NORMAL)
    words = ("allow", "ask", "deny")
    assert words.index(after.word) >= words.index(before.word)
    if before.assessment is not None and after.assessment is not None:
        assert after.assessment.terms.covers(before.assessment.terms)
