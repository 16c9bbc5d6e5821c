"""The calls that are measured: what the forms hold, that all contenders get the same, and that ours does the work."""

from __future__ import annotations

import json
from typing import Any

import benchmarks.measure
import pytest
from benchmarks import toolgate_call
from benchmarks.measure import CHECKED, measure
from benchmarks.workload import Workload, workload
from pydantic import TypeAdapter
from pydantic_ai import Tool

import toolgate

FORMS = {"form_300": (280, 320), "form_2k": (1900, 2100)}


def without_titles(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: without_titles(value) for key, value in schema.items() if key != "title"}
    return schema


@pytest.mark.parametrize("name", FORMS)
def test_a_form_has_ids_a_list_an_object_and_words_in_its_size(name: str) -> None:
    texts = workload(name).texts
    least, most = FORMS[name]
    assert all(least <= len(text) <= most for text in texts)
    arguments = json.loads(texts[0])
    assert arguments["account"] == "ACC-0042"
    assert len(arguments["lines"]) > 1
    assert arguments["deliver_to"].keys() == {"name", "street", "city"}
    assert arguments["note"].count(" ") > 3


@pytest.mark.parametrize("name", FORMS)
def test_forms_differ_from_call_to_call(name: str) -> None:
    work = workload(name)
    sent = work.sent()
    assert len({next(sent) for _ in range(1000)}) == 1000
    for key in ("account", "order", "note"):
        assert json.loads(work.texts[0])[key] != json.loads(work.texts[1])[key]


@pytest.mark.parametrize("name", ["flat", *FORMS])
def test_all_three_are_given_the_same_schema(name: str) -> None:
    function: Any = workload(name).function
    ours = toolgate.tool(effects="read")(function).input_schema
    assert without_titles(ours) == without_titles(TypeAdapter(function).json_schema())
    assert without_titles(ours) == without_titles(Tool(function).function_schema.json_schema)


@pytest.mark.parametrize("name", ["flat", *FORMS])
@pytest.mark.parametrize("case", toolgate_call.CASES)
async def test_our_side_answers_what_the_function_answers(
    case: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(benchmarks.measure, "SLICES", 2)  # the answers are judged here, and not the time
    line = await measure(toolgate_call.CASES[case], workload(name), calls=CHECKED)
    assert line["raw_us"] > 0
    assert line["references"] > 0


async def test_a_contender_that_skips_the_work_is_not_timed() -> None:
    async def other(**_: Any) -> dict[str, Any]:
        return {}

    work = workload("flat")
    lazy = Workload(function=other, texts=work.texts)
    with pytest.raises(SystemExit, match="not the workload's"):
        await measure(lambda _: toolgate_call.governed(lazy), work, calls=CHECKED)
