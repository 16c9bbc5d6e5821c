"""Patterns compiled at first use: the same answers, and nothing compiled before."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from toolgate.kernel.text import masking
from toolgate.kernel.text.lazy_pattern import lazy_pattern
from toolgate.kernel.text.masking import keys as masking_keys
from toolgate.kernel.text.masking import shapes as masking_shapes


def test_a_pattern_is_compiled_at_its_first_use() -> None:
    wrong = lazy_pattern("(")
    with pytest.raises(re.error):
        wrong.search("x")


def test_every_method_answers_as_the_compiled_pattern_does() -> None:
    lazy, compiled = lazy_pattern("A(.)", re.IGNORECASE), re.compile("A(.)", re.IGNORECASE)
    assert lazy.findall("ab AC") == compiled.findall("ab AC")
    assert [match.span() for match in lazy.finditer("ab AC")] == [(0, 2), (3, 5)]
    assert lazy.sub("-", "ab AC") == compiled.sub("-", "ab AC")
    assert lazy.subn("-", "ab AC") == compiled.subn("-", "ab AC")
    assert lazy.split("ab xAC") == compiled.split("ab xAC")
    assert lazy.match("xab") is None
    assert lazy.search("xab") is not None
    assert lazy.fullmatch("ab") is not None


def test_what_a_lazy_pattern_does_not_offer_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="`scanner`"):
        _ = lazy_pattern("a").scanner  # type: ignore[attr-defined]  # not among the types' methods either


@pytest.mark.parametrize("module", [masking, masking_keys, masking_shapes])
def test_masking_compiles_nothing_at_import(module: object) -> None:
    compiled = [name for name, value in vars(module).items() if isinstance(value, re.Pattern)]
    assert compiled == []
    assert all(pattern.findall("") is not None for pattern in _patterns(vars(module)))


def _patterns(value: object) -> list[re.Pattern[str]]:
    """Return every lazy pattern a module names, also inside its tables; using each shows that it compiles."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [pattern for item in value for pattern in _patterns(item)]
    return [value] if type(value).__name__ == "_LazyPattern" else []  # type: ignore[list-item]  # stands for one


def test_no_pattern_repeats_a_group_possessively() -> None:
    """Pythons before 3.11.5 (Debian 12 has one) match those wrongly, and a secret would be seen."""
    sources = Path(masking.__file__).parents[3].rglob("*.py")
    found = [f"{path.name}: {line.strip()}" for path in sources for line in path.read_text().splitlines()
             if re.search(r"\)(?:\+\+|\*\+|\?\+|\}\+)", line)]  # fmt: skip
    assert found == []
