"""The texts and documents whose differences are measured: about 1 MB each, the same in every process.

`run` measures one case with the functions a contender brings and prints one JSON line. Nothing here imports a
library, so that peers can run it in their own environments.
"""

import argparse
import json
import random
import time
from collections.abc import Callable
from typing import Any

LINES = 20_000
ROWS = 45_000
LOG_INSERTED = 200
CASES = ("text_unique", "text_150", "text_log", "json_changed", "json_head")


def _line(rng: random.Random, label: str) -> str:
    return f"{label} " + "".join(rng.choices("abcdefghij klmnop", k=43))


def _changed(rng: random.Random, lines: list[str]) -> list[str]:
    new = list(lines)
    for at in rng.sample(range(len(lines)), len(lines) // 100):
        new[at] = _line(rng, f"changed {at}")
    return new


def _text_unique() -> tuple[str, str]:
    rng = random.Random(1)
    old = [_line(rng, f"{number:06d}") for number in range(LINES)]
    return "\n".join(old) + "\n", "\n".join(_changed(rng, old)) + "\n"


def _text_150() -> tuple[str, str]:
    rng = random.Random(2)
    kinds = [_line(rng, f"{number:06d}") for number in range(150)]
    old = rng.choices(kinds, k=LINES)
    return "\n".join(old) + "\n", "\n".join(_changed(rng, old)) + "\n"


def _text_log() -> tuple[str, str]:
    rng = random.Random(3)
    kinds = [_line(rng, f"worker {number}") for number in range(7)]
    old = [kinds[number % 7] for number in range(LINES)]
    new = list(old)
    for number in range(LOG_INSERTED):
        new.insert(rng.randrange(len(new)), f"failure {number}")
    return "\n".join(old) + "\n", "\n".join(new) + "\n"


def _rows() -> list[dict[str, int]]:
    return [{"id": number, "v": number} for number in range(ROWS)]


def _json_changed() -> tuple[Any, Any]:
    new = _rows()
    for at in random.Random(4).sample(range(ROWS), ROWS // 100):
        new[at]["v"] = -1
    return _rows(), new


def _json_head() -> tuple[Any, Any]:
    return _rows(), [{"id": -1, "v": 0}, *_rows()]


def inputs(case: str) -> tuple[Any, Any]:
    """Return the old and the new side of a case."""
    makers: dict[str, Callable[[], tuple[Any, Any]]] = {
        "text_unique": _text_unique,
        "text_150": _text_150,
        "text_log": _text_log,
        "json_changed": _json_changed,
        "json_head": _json_head,
    }
    return makers[case]()


def run(diff_text: Callable[[str, str], Any], diff_json: Callable[[Any, Any], Any]) -> None:
    """Measure the CPU time of the case named on the command line, after a small one that loads what is needed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("case", choices=CASES)
    case = parser.parse_args().case
    is_text = case.startswith("text")
    diff = diff_text if is_text else diff_json
    diff(*(("a\nb\n", "b\na\n") if is_text else ([1, 2], [2, 1])))
    old, new = inputs(case)
    begin = time.process_time()
    result = diff(old, new)
    took_ms = (time.process_time() - begin) * 1000
    line = {"ms": took_ms, "additions": float(result.additions), "deletions": float(result.deletions)}
    if not is_text:
        line["operations"] = float(len(json.loads(result.diff_output)))
    print(json.dumps(line))
