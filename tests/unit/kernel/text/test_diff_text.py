"""Differences of texts: what they say, what they count, and that `patch` applies them."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.soak import times

from toolgate.errors import UsageError
from toolgate.kernel.text.diff import DiffLine, DiffType, diff_text
from toolgate.kernel.text.diff import align as diff_align

LINES = [
    "",
    "a",
    "b",
    "-- sql",
    "++ c",
    "--- a/x",
    "+++ b/x",
    "@@ -1 +1 @@",
    "\\ No newline",
    " x",
    "a\r",
    "\x0c",
    "é\u2028",
]
texts = st.lists(st.sampled_from(LINES), max_size=12).map("\n".join)


def patched(folder: Path, old: str, diff: str) -> str:
    """Return what `patch` makes of the old text."""
    if shutil.which("patch") is None:
        pytest.skip("patch is not installed")
    file = folder / "file"
    file.write_bytes(old.encode())
    done = subprocess.run(
        ["patch", "--silent", "--posix", "--binary", "--fuzz=0", str(file)],
        input=diff.encode(),
        capture_output=True,
        check=False,
        cwd=folder,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["file"]  # applied exactly, nothing rejected
    return file.read_bytes().decode()


def random_pair(rng: random.Random, size: int) -> tuple[str, str]:
    """Return two related texts, some without a final newline, with carriage returns or quite empty."""
    old = [rng.choice(LINES) for _ in range(rng.randrange(size))]
    new = list(old)
    for _ in range(rng.randrange(6)):
        at = rng.randrange(len(new) + 1)
        new[at : at + rng.randrange(3)] = [rng.choice(LINES) for _ in range(rng.randrange(3))]
    ends = ("", "\n", "\r\n")
    return "\n".join(old) + rng.choice(ends), "\n".join(new) + rng.choice(ends)


def test_an_added_line_is_shown_with_its_context() -> None:
    old = "Shopping\n\nFruit:\n- apples\n- pears\n"
    result = diff_text(old, old + "- plums\n")
    assert result.diff_output == (
        "--- a/original\n+++ b/modified\n@@ -3,3 +3,4 @@\n Fruit:\n - apples\n - pears\n+- plums\n"
    )
    assert (result.additions, result.deletions, result.unchanged) == (1, 0, 5)
    assert result.similarity == 0.909
    assert result.has_changes
    assert result.change_summary == "+1"
    assert result.changes[-1] == DiffLine("add", "- plums\n", None, 6)
    assert result.changes[0] == DiffLine("equal", "Fruit:\n", 3, 3)


def test_equal_texts_have_no_difference() -> None:
    result = diff_text("a\nb", "a\nb")
    assert (result.diff_output, result.similarity, result.has_changes) == ("", 1.0, False)
    assert (result.change_summary, result.unchanged, result.truncated) == ("no changes", 2, False)


def test_a_result_can_be_stored_as_json() -> None:
    stored = json.loads(json.dumps(diff_text("a\n", "b\n").to_dict()))
    assert stored["diff_type"] == "unified"
    assert stored["change_summary"] == "+1 -1"
    assert stored["has_changes"] is True
    assert stored["truncated"] is False
    assert stored["changes"][0] == {
        "type": "remove",
        "content": "a\n",
        "line_number_old": 1,
        "line_number_new": None,
    }


def test_lines_that_look_like_headers_are_counted() -> None:
    result = diff_text("-- old comment\nkeep\n", "++ new\nkeep\n--- x\n")
    assert (result.additions, result.deletions) == (2, 1)


def test_a_tiny_change_of_a_large_text_is_not_called_equal() -> None:
    old = "".join(f"{number}\n" for number in range(30_000))
    assert diff_text(old, old + "one more\n").similarity == 0.999


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", "a"),
        ("", "a\n"),
        ("a\n", ""),
        ("a", ""),
        ("a", "a\n"),
        ("a\n", "a"),
        ("a\r\nb\r\n", "a\r\nc\r\n"),
        ("a\nb\n", "a\r\nb\r\n"),
        ("a\rb", "a\rc"),
        ("\n", "\n\n"),
        ("a\nb\nc\nd", "a\nb\nc\nd\n"),
    ],
)
@pytest.mark.parametrize("kind", [DiffType.UNIFIED, DiffType.CONTEXT])
def test_patch_applies_the_awkward_cases(tmp_path: Path, old: str, new: str, kind: DiffType) -> None:
    assert patched(tmp_path, old, diff_text(old, new, kind).diff_output) == new


@pytest.mark.parametrize(
    ("kind", "context"),
    [(DiffType.UNIFIED, 3), (DiffType.UNIFIED, 1), (DiffType.UNIFIED, 0), (DiffType.CONTEXT, 3)],
)
def test_patch_applies_forty_random_differences(tmp_path: Path, kind: DiffType, context: int) -> None:
    rng = random.Random(2026 + context)
    applied = 0
    while applied < 40:
        old, new = random_pair(rng, 30)
        if old != new:
            assert patched(tmp_path, old, diff_text(old, new, kind, context).diff_output) == new
            applied += 1


def count_lines(text: str) -> int:
    return text.count("\n") + (text != "" and not text.endswith("\n"))


def check_round_trip(old: str, new: str) -> None:
    result = diff_text(old, new)
    assert result.unchanged + result.deletions == count_lines(old)
    assert result.unchanged + result.additions == count_lines(new)
    assert result.has_changes == (old != new)
    rebuilt = [line.content for line in diff_text(old, new, DiffType.LINE_BY_LINE).changes if line.type != "remove"]
    assert "".join(rebuilt) == (new if old != new else "")
    taken = [line.content for line in result.changes if line.type == "add"]
    assert len(taken) == result.additions


@given(texts, texts)
@example("", "\n")
def test_the_counts_and_the_lines_fit_both_texts(old: str, new: str) -> None:
    check_round_trip(old, new)


@pytest.mark.soak
def test_patch_applies_a_thousand_random_differences(tmp_path: Path) -> None:
    rng = random.Random()
    for _ in range(times(1000)):
        old, new = random_pair(rng, 60)
        if old != new:
            assert patched(tmp_path, old, diff_text(old, new).diff_output) == new


def longest_common(old: list[str], new: list[str]) -> int:
    row = [0] * (len(new) + 1)
    for a in old:
        previous = row
        row = [0]
        for at, b in enumerate(new):
            row.append(previous[at] + 1 if a == b else max(previous[at + 1], row[at]))
    return row[-1]


@given(st.lists(st.sampled_from("abcd"), max_size=30), st.lists(st.sampled_from("abcd"), max_size=30))
def test_no_line_is_changed_that_need_not_be(old: list[str], new: list[str]) -> None:
    result = diff_text("".join(f"{line}\n" for line in old), "".join(f"{line}\n" for line in new))
    assert result.unchanged == longest_common(old, new)


def test_a_repetitive_log_is_counted_exactly() -> None:
    old = [f"worker {number % 7} ok" for number in range(20_000)]
    new = list(old)
    for at in range(0, 20_000, 400):
        new.insert(at, f"error at {at}")
    del new[9_000:9_003]
    result = diff_text("\n".join(old), "\n".join(new))
    assert (result.additions, result.deletions) == (50, 3)
    assert result.similarity == 0.999


def test_a_text_that_grew_is_compared_only_where_it_grew() -> None:
    old = "line\n" * 3_000_000
    result = diff_text(old, old + "more\n")
    assert (result.additions, result.deletions, result.truncated) == (1, 0, False)
    assert "@@ -2999998,3 +2999998,4 @@" in result.diff_output


def test_too_large_texts_give_a_marker_instead_of_a_difference() -> None:
    result = diff_text("same\n" + "a\n" * 50 + "end\n", "same\n" + "b\n" * 60 + "end\n", max_characters=100)
    assert result.truncated
    assert result.diff_output.startswith("[diff truncated: 120 characters differ, more than 100")
    assert (result.additions, result.deletions, result.unchanged) == (60, 50, 2)
    assert result.similarity == 0.035


def test_too_many_lines_in_another_order_give_a_marker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diff_align, "_MAX_CELLS", 100)
    old = [str(number) for number in range(40)]
    shuffled = "\n".join(reversed(old))
    assert diff_text("\n".join(old), shuffled).diff_output.startswith("[diff truncated: too many lines")
    near = diff_text("\n".join(["x", *old]), "\n".join([*old[:-1], "y", old[0]]))
    assert (near.truncated, near.additions, near.deletions) == (False, 2, 2)


def test_a_large_search_may_be_inexact_but_never_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diff_align, "_EXACT_CELLS", 0)
    rng = random.Random(7)
    for _ in range(50):
        check_round_trip(*random_pair(rng, 40))


def numbered(count: int) -> list[str]:
    return [f"{number}\n" for number in range(count)]


def test_lines_replaced_in_a_long_text_are_counted_in_place() -> None:
    old = numbered(30_000)
    new = list(old)
    for at in range(100, 30_000, 300):
        new[at] = f"new {at}\n"
    new[500:502] = [old[501], old[500]]  # swapped: one of the two can stay
    result = diff_text("".join(old), "".join(new))
    assert (result.additions, result.deletions) == (101, 101)


def test_a_shift_inside_a_long_text_is_one_removal_and_one_insertion() -> None:
    old = [f"{number % 150}\n" for number in range(30_000)]
    new = [*old[:10_000], "new\n", *old[10_000:12_000], *old[12_001:]]
    result = diff_text("".join(old), "".join(new))
    assert (result.additions, result.deletions) == (1, 1)


def test_a_long_text_with_many_edits_is_split_at_lines_that_stand_once() -> None:
    rng = random.Random(3)
    old = numbered(25_000)
    new = [line for line in old if rng.random() > 0.02]
    for _ in range(500):
        new.insert(rng.randrange(len(new)), "inserted\n")
    result = diff_text("".join(old), "".join(new))
    assert (result.additions, result.deletions) == (500, 25_500 - len(new))


def test_a_block_moved_in_a_long_text_costs_only_the_block() -> None:
    old = numbered(25_000)
    new = [*old[:1], *old[101:20_000], *old[1:101], *old[20_000:], "end\n"]
    result = diff_text("".join(old), "".join(new))
    assert (result.additions, result.deletions) == (101, 100)


def test_a_long_text_all_in_another_order_gives_a_marker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diff_align, "_MAX_CELLS", 1_000)
    monkeypatch.setattr(diff_align, "_EXACT_CELLS", 1_000)
    rng = random.Random(5)
    old, new = ([rng.choice("abcdef") + "\n" for _ in range(500)] for _ in range(2))
    assert diff_text("".join(old), "".join(new)).truncated


def test_more_distinct_lines_than_characters_give_a_marker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diff_align, "_MAX_DISTINCT", 3)
    assert diff_text("1\n2\n3\n4\nx\n", "2\n1\n4\n3\ny\n").truncated


def test_a_file_name_cannot_end_its_header() -> None:
    result = diff_text("a\n", "b\n", fromfile='a\n+++ "evil', tofile="")
    assert result.diff_output.splitlines()[:2] == ['--- "a\\012+++ \\"evil"', '+++ ""']


def test_line_by_line_shows_every_line() -> None:
    assert diff_text("a\nb\nc", "a\nx\nc", DiffType.LINE_BY_LINE).diff_output == "  a\n- b\n+ x\n  c\n"


def test_the_context_format_marks_replaced_lines() -> None:
    assert diff_text("a\nb\n", "a\nc\nd\n", DiffType.CONTEXT).diff_output == (
        "*** a/original\n--- b/modified\n***************\n*** 1,2 ****\n  a\n! b\n--- 1,3 ----\n  a\n! c\n! d\n"
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((b"a", "b"), "decode bytes"),
        (("a", None), "compares two texts"),
        (("a", "b", DiffType.JSON_PATCH), "diff_json"),
        (("a", "b", DiffType.UNIFIED, -1), "context_lines"),
        (("a", "b", DiffType.UNIFIED, 1.5), "context_lines"),
    ],
)
def test_what_cannot_be_compared_is_refused(arguments: tuple[object, ...], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        diff_text(*arguments)  # type: ignore[arg-type]  # on purpose
