"""Files are found, followed and layered; what cannot be read is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.policy.asking import policy, word

from toolgate.errors import PolicyError, UsageError
from toolgate.kernel.policy import Policy
from toolgate.policy import PLACES, FilePolicy, PolicySource, find_policy, load_policy, strict_yaml
from toolgate.policy.loader import MAX_FILES, revise_policy


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_both_default_places_count(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"toolgate\.yaml or config/governance/tools\.yaml"):
        find_policy(tmp_path)
    write(tmp_path, "config/governance/tools.yaml", "tools: {act: {decision: deny}}")
    assert word(load_policy(tmp_path)) == "deny"
    write(tmp_path, "toolgate.yaml", "tools: {act: {decision: allow}, other: {decision: ask}}")
    both = load_policy(tmp_path)
    assert (word(both), word(both, tool="other")) == ("deny", "ask")


def test_where_there_is_no_policy_a_new_user_is_told_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PolicyError, match=r"There is no policy in this folder: `toolgate init` writes a first one"):
        find_policy(".")


def test_the_current_directory_is_searched_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "toolgate.yaml", "default: deny")
    assert word(load_policy()) == "deny"


def test_the_strictest_layer_wins_and_the_order_does_not_matter(tmp_path: Path) -> None:
    org = "layer: org\ntools: {act: {decision: ask, approval: {quorum: 2}}, b: {decision: deny}}"
    write(tmp_path, "org.yaml", org)
    mine = write(tmp_path, "mine.yaml", "include: [org.yaml]\ntools: {act: {decision: allow}, b: {decision: allow}}")
    found = load_policy(mine)
    assert (word(found), word(found, tool="b")) == ("ask", "deny")
    assert [document.layer for document in found.documents] == ["org", "project"]


def test_a_file_includes_only_its_own_layer_or_higher(tmp_path: Path) -> None:
    write(tmp_path, "tool.yaml", "layer: tool")
    mine = write(tmp_path, "mine.yaml", "default: ask\ninclude:\n  - tool.yaml\n")
    with pytest.raises(PolicyError) as caught:
        load_policy(mine)
    [problem] = caught.value.problems
    assert (problem.line, problem.column) == (3, 5)
    assert "below `project`" in problem.message


def test_files_that_include_each_other_are_read_once(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", "include: [b.yaml]\ntools: {act: {decision: ask}}")
    write(tmp_path, "b.yaml", "include: [a.yaml]")
    assert len(load_policy(tmp_path / "a.yaml").documents) == 2


def test_what_is_included_and_cannot_be_read_is_named(tmp_path: Path) -> None:
    mine = write(tmp_path, "mine.yaml", "include: [nope.yaml]")
    with pytest.raises(PolicyError, match=r"mine\.yaml:1:11: include\.0: .*nope\.yaml cannot be read"):
        load_policy(mine)
    with pytest.raises(PolicyError, match="cannot be read"):
        load_policy(tmp_path / "nope.yaml")


def test_problems_of_all_files_are_told_together(tmp_path: Path) -> None:
    write(tmp_path, "other.yaml", "tools: {a: {nope: 1}}\ndefault: no")
    mine = write(tmp_path, "mine.yaml", "include: [other.yaml]\ntools: {a: {decisions: ask}}")
    with pytest.raises(PolicyError) as caught:
        load_policy(mine)
    assert [Path(problem.file).name for problem in caught.value.problems] == ["mine.yaml", "other.yaml"]


def test_a_command_has_one_grammar(tmp_path: Path) -> None:
    write(tmp_path, "other.yaml", "commands: {git: }")
    mine = write(tmp_path, "mine.yaml", "include: [other.yaml]\ncommands: {git: }")
    with pytest.raises(PolicyError, match="already has a grammar"):
        load_policy(mine)


def test_there_is_an_end_to_including(tmp_path: Path) -> None:
    for number in range(MAX_FILES + 1):
        write(tmp_path, f"{number}.yaml", f"include: [{number + 1}.yaml]")
    with pytest.raises(PolicyError, match="at most"):
        load_policy(tmp_path / "0.yaml")


def test_the_revision_is_of_what_is_said_not_of_how(tmp_path: Path) -> None:
    one = policy("tools: {act: {decision: ask, roles: {allowed: [a]}}}", workspace=tmp_path)
    same = policy("# a comment\ntools:\n  act:\n    roles: {allowed: [a]}\n    decision: 'ask'\n", workspace=tmp_path)
    other = policy("tools: {act: {decision: ask, roles: {allowed: [b]}}}", workspace=tmp_path)
    assert one.revision == same.revision
    assert len({one.revision, other.revision, policy("", workspace="/").revision}) == 3


def test_a_source_knows_when_its_files_changed(tmp_path: Path) -> None:
    other = write(tmp_path, "other.yaml", "default: deny")
    mine = write(tmp_path, "mine.yaml", "include: [other.yaml]")
    source = PolicySource(mine)
    assert isinstance(source.load(), FilePolicy)
    assert not source.has_changed()
    other.write_text("default: nope")
    assert source.has_changed()
    with pytest.raises(PolicyError):
        source.load()
    assert not source.has_changed()  # told once
    other.unlink()
    assert source.has_changed()


def test_what_is_written_while_a_policy_is_read_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = write(tmp_path, "mine.yaml", "default: ask")
    source, read = PolicySource(mine), strict_yaml.read

    def slow(text: str | bytes, name: str) -> strict_yaml.Tree:
        mine.write_text("default: deny")
        return read(text, name)

    monkeypatch.setattr(strict_yaml, "read", slow)
    source.load()
    monkeypatch.undo()
    assert source.has_changed()
    source.load()
    assert not source.has_changed()


def test_a_link_that_leads_elsewhere_is_a_change(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").symlink_to(write(tmp_path, "old.yaml", "default: ask"))
    source = PolicySource(tmp_path / "mine.yaml")
    before = source.load().revision
    (tmp_path / "next").symlink_to(write(tmp_path, "new.yaml", "default: deny"))
    (tmp_path / "next").rename(tmp_path / "mine.yaml")
    assert source.has_changed()
    assert source.load().revision != before


def test_a_source_names_where_a_policy_would_be_read_from_too(tmp_path: Path) -> None:
    file = write(tmp_path, "toolgate.yaml", "version: 1")
    places = tuple(str(tmp_path / place) for place in PLACES)
    assert PolicySource(tmp_path).named() == places
    assert PolicySource(file).named() == (str(file),)
    assert PolicySource(tmp_path, projects=tmp_path / "own").named() == (*places, str(tmp_path / "own"))


def test_a_policy_knows_what_its_files_said(tmp_path: Path) -> None:
    file = write(tmp_path, "toolgate.yaml", "{version: 1, include: [more.yaml]}")
    more = write(tmp_path, "more.yaml", "version: 1")
    own = write(tmp_path, "own/shop.yaml", "version: 1 # own")
    said = {str(one): one.read_text() for one in (file, more, own)}
    assert PolicySource(tmp_path, projects=tmp_path / "own").load().texts() == said
    assert Policy().texts() == {}


def test_an_unknown_name_of_the_package_is_no_attribute() -> None:
    import toolgate.policy

    with pytest.raises(AttributeError):
        toolgate.policy.nothing  # noqa: B018


def test_a_file_can_be_tried_with_another_text(tmp_path: Path) -> None:
    org = write(tmp_path, "org.yaml", "layer: org\ntools: {b: {decision: deny}}")
    file = write(tmp_path, "toolgate.yaml", "include: [org.yaml]\ntools: {act: {decision: allow}}  # why\n")
    loaded = load_policy(tmp_path)
    assert [one.text for one in loaded.documents] == [org.read_text(), file.read_text()]
    org.unlink()  # nothing is read again
    tried = revise_policy(loaded, {str(file): "include: [org.yaml]\ntools: {act: {decision: ask}}"})
    assert (word(tried), word(tried, tool="b"), word(loaded)) == ("ask", "deny", "allow")
    assert revise_policy(loaded, {}).revision == loaded.revision


def test_a_text_that_is_tried_reads_no_other_file(tmp_path: Path) -> None:
    secret = write(tmp_path, "secret.yaml", "password: hunter2")
    file = write(tmp_path, "toolgate.yaml", "default: deny")
    loaded = load_policy(tmp_path)
    with pytest.raises(PolicyError, match="a trial reads no other files") as caught:
        revise_policy(loaded, {str(file): f"default: deny\ninclude: [{secret}]"})
    assert "hunter2" not in str(caught.value)
    assert [(problem.line, problem.path) for problem in caught.value.problems] == [(2, "include.0")]
    with pytest.raises(UsageError, match="no file 'other'"):
        revise_policy(loaded, {"other": "default: deny"})


def test_what_is_wrong_with_a_tried_text_is_told(tmp_path: Path) -> None:
    for text in (
        "default: [",
        "- a list",
        "default: maybe",
        "tools: {act: {decision: deny, examples: [{expect: ask}]}}",
    ):
        with pytest.raises(PolicyError) as caught:
            revise_policy(Policy(), {"new": text})
        assert {problem.file for problem in caught.value.problems} == {"new"}
    assert word(revise_policy(Policy(), {"new": "default: deny"})) == "deny"


def test_a_policy_lets_go_of_the_roots_it_opened(tmp_path: Path) -> None:
    file = write(tmp_path, "toolgate.yaml", "default: deny")
    loaded = load_policy(file, workspace=tmp_path)
    loaded.close()
    root = loaded.workspace.roots[0]
    assert root.descriptor.is_open
    loaded.close()
    assert not root.descriptor.is_open
