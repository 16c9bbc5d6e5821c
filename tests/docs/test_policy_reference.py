"""The page of the policy language is what its models say, and every policy in the documentation is valid."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.docs.pages import ROOT, Block, blocks, name_of, pages, read, sections
from tools.write_policy_reference import page

from toolgate.policy.document import META, Settings
from toolgate.policy.loader import read_policy
from toolgate.policy.rules import aliases, keys

PAGE = "docs/reference/policy-language.md"
POLICIES = [
    pytest.param(block, id=f"{name_of(path)}:{block.line}")
    for path in pages()
    for block in blocks(path)
    if block.language == "yaml"
]


def test_the_page_is_written_from_the_models() -> None:
    assert read(PAGE) == page(), "run `python tools/write_policy_reference.py`"


def test_every_key_is_on_the_page() -> None:
    text = read(PAGE)
    assert [name for name in (*keys(), *aliases(), *META, *Settings.model_fields) if f"`{name}`" not in text] == []
    assert [name for name in keys() if name not in sections(PAGE, 3)] == []


@pytest.mark.parametrize("block", POLICIES)
def test_every_policy_in_the_documentation_is_valid(block: Block, tmp_path: Path) -> None:
    assert read_policy(block.code, workspace=tmp_path).revision


def test_there_are_thirteen_policies_in_the_cookbook() -> None:
    found = blocks(ROOT / "docs/how-to/policy-cookbook.md")
    assert len([block for block in found if block.language == "yaml"]) == 13
