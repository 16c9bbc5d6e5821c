"""Whether one person is enough: said in the policy, and by every layer that speaks of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolgate.errors import PolicyError
from toolgate.kernel.policy import Policy
from toolgate.policy import load_policy, read_policy
from toolgate.policy.profiles import PROFILES, render


@pytest.mark.parametrize(
    ("text", "is_enough"), [("", False), ("single_person: true", True), ("single_person: false", False)]
)
def test_one_person_is_enough_only_where_the_policy_says_so(text: str, is_enough: bool) -> None:
    assert read_policy(f"version: 1\n{text}").single_person is is_enough


@pytest.mark.parametrize(("org", "is_enough"), [("true", True), ("false", False)])
def test_a_layer_that_says_no_wins(tmp_path: Path, org: str, is_enough: bool) -> None:
    (tmp_path / "org.yaml").write_text(f"layer: org\nsingle_person: {org}")
    (tmp_path / "toolgate.yaml").write_text("include: [org.yaml]\nsingle_person: true")
    assert load_policy(tmp_path).single_person is is_enough


def test_it_is_true_or_false_and_nothing_else() -> None:
    with pytest.raises(PolicyError, match="single_person"):
        read_policy("single_person: maybe")


@pytest.mark.parametrize("profile", PROFILES)
def test_init_writes_it_down(profile: str) -> None:
    assert "\nsingle_person: true\n" in render(profile)["toolgate.yaml"]  # type: ignore[arg-type]


def test_a_policy_of_code_does_not_say_so() -> None:
    assert Policy().single_person is False
