"""What a person leaves masked stays what it is; what they change is told."""

from __future__ import annotations

from typing import Any

import pytest

from toolgate.errors import UsageError
from toolgate.kernel.editing import difference, restore
from toolgate.kernel.text.masking import MASK, Masker

REAL: dict[str, Any] = {
    "password": "hunter2!x",
    "to": "a",
    "nested": {"token": "tok-9", "n": 1},
    "list": [{"secret": "s3"}, 2],
}
SHOWN = Masker()(REAL)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, {}),
        ({"to": "b"}, {"to": "b"}),
        ({"nested": {"token": MASK, "n": 2}}, {"nested": {"token": "tok-9", "n": 2}}),
        ({"list": [{"secret": MASK}, 3]}, {"list": [{"secret": "s3"}, 3]}),
        ({"list": [7]}, {"list": [7]}),
        ({"to": {"deep": [1]}}, {"to": {"deep": [1]}}),
        ({"password": "new one"}, {"password": "new one"}),
    ],
)
def test_masked_values_come_back(change: dict[str, Any], expected: dict[str, Any]) -> None:
    assert restore({**SHOWN, **change}, SHOWN, REAL) == {**REAL, **expected}  # type: ignore[dict-item]  # masked values are a dict


@pytest.mark.parametrize("edited", [{"to": MASK}, {"password": f"{MASK}x"}, {"list": [{"secret": MASK}]}])
def test_a_mask_nobody_can_read_is_refused(edited: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="hidden value"):
        restore(edited, SHOWN, REAL)


def test_the_difference_names_what_changed_masked() -> None:
    after = {"password": "another1!", "to": "a", "new": 1, "list": REAL["list"]}
    assert difference(REAL, after, Masker()) == {
        "password": {"before": MASK, "after": MASK},
        "nested": {"before": {"token": MASK, "n": 1}},
        "new": {"after": 1},
    }
