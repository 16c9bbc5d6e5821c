"""What a person leaves masked stays what it is; what they change is told."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.kernel.samples import an_approval

from toolgate.errors import UsageError
from toolgate.kernel.editing import difference, restore, takes_network, with_network
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


LINES = {"properties": {"command": {"type": "string", "format": "shell-line"}, "network": {"type": "boolean"}}}


@pytest.mark.parametrize(
    ("schema", "takes"),
    [
        (LINES, True),
        (None, False),
        ({}, False),
        ({"properties": {"command": True, "network": True}}, False),
        ({"properties": {**LINES["properties"], "network": {"type": "string"}}}, False),
        ({"properties": {"network": {"type": "boolean"}}}, False),
    ],
)
def test_only_what_runs_command_lines_takes_a_network(schema: Any, takes: bool) -> None:
    assert takes_network(schema) is takes


def test_a_network_is_all_that_a_grant_of_it_changes() -> None:
    shown = {"command": "x", "password": MASK}
    asked = an_approval(arguments=shown, input_schema=LINES)
    assert with_network(asked) == {**shown, "network": True}
    for refused in (
        an_approval(arguments={**shown, "network": True}, input_schema=LINES),
        an_approval(arguments=MASK, input_schema=LINES),
        an_approval(arguments=shown, input_schema={}),
    ):
        with pytest.raises(UsageError, match="network"):
            with_network(refused)
