"""What an approver sees, and that nothing others wrote can act on any surface."""

from __future__ import annotations

import html.parser
import json
import re
import time
from typing import Any

import pytest

from toolgate.errors import NotFoundError, UsageError
from toolgate.kernel.approval import Note
from toolgate.kernel.artifact import (
    CLAIM,
    ApprovalArtifact,
    Block,
    Style,
    artifact_of,
    deed_of,
    preview_parts,
    summary_of,
)
from toolgate.kernel.surfaces import to_html, to_markdown, to_plain, to_terminal
from toolgate.kernel.terms import ApprovalTerms
from toolgate.kernel.text.rendering import BUDGET, clip_entries, clip_field, cut_piece
from toolgate.testing.conformance.rows import an_approval

EVIL = (
    "ok\n\x1b[2J```\n# Approved\n[click](javascript:alert(1))<script>alert(1)</script>"
    "<img src=x onerror=1>\u202e\n  | Risk: low"
)


def an_artifact(**fields: Any) -> ApprovalArtifact:
    standard: dict[str, Any] = {"requester": "agent:a", "user": "ann", "project": "p", "arguments": {"x": 1}}
    return ApprovalArtifact("id-1", "write", "Run write?", **{**standard, **fields})


def test_the_shape_of_the_documents_is_kept() -> None:
    artifact = ApprovalArtifact("id", "tool", "message")
    assert artifact.options == ["approve", "deny"]
    assert json.loads(json.dumps(artifact.to_dict()))["request_id"] == "id"


def test_an_approval_is_shown_with_all_its_facts() -> None:
    approval = an_approval(
        user="ann", run_id="r", level="full", risk="high", confidence=40, reasons=("paths: outside",), undoable=True,
        arguments={"path": "a"}, preview="+ a", requires_reason=True, digest="abc",
    )  # fmt: skip
    artifact = artifact_of(approval)
    text = to_plain(artifact)
    for fact in (
        "Run write?", "Tool: write", "Asked by: agent:local on behalf of ann", "Risk: high",
        "Why it asks: paths: outside", "Confidence: 40 of 100", "Undo: can be undone", "Level: full", "a reason",
        "Expires: 2", "Digest: abc", '"path": "a"', "+ a",
    ):  # fmt: skip
        assert fact in text
    assert json.loads(json.dumps(artifact.to_dict()))["expires_at"] == approval.expires_at.isoformat()
    assert artifact.action_summary == 'write(path="a")'
    assert artifact.warnings == ()
    assert not artifact.must_expand


@pytest.mark.parametrize(
    ("undoable", "ttl_s", "said"),
    [
        (False, None, "cannot be undone"),
        (True, 3600.0, "for 60 minutes"),
        (True, 30.0, "for 30 seconds"),
        (True, None, "can be undone"),
    ],
)
def test_it_says_whether_and_how_long_it_can_be_undone(undoable: bool, ttl_s: float | None, said: str) -> None:
    assert said in to_plain(an_artifact(undoable=undoable, undo_ttl_s=ttl_s))


def test_what_the_agent_says_is_fenced_off_as_its_claim() -> None:
    blocks = an_artifact(claim="Trust me").blocks()
    assert [(block.title, block.text) for block in blocks if block.style is Style.CLAIM] == [(CLAIM, "Trust me")]


def test_a_line_break_in_a_fact_begins_no_other_fact() -> None:
    facts = an_artifact(reasons=("rule: x\nRisk: low",), user=None).blocks()[1].text
    assert "Why it asks: rule: x ⏎ Risk: low" in facts.split("\n")


def test_previews_are_shown_as_what_they_are() -> None:
    titles = [block.title for block in an_artifact(preview={"diff": "+a", "size": 3}).blocks()]
    assert titles[-2:] == ["What it would change", "About the change"]
    assert an_artifact(preview={"diff": "-a"}).blocks()[-1].style is Style.DIFF
    assert an_artifact(preview=["a"]).blocks()[-1].style is Style.CODE


def test_a_summary_looks_at_no_more_than_its_beginning() -> None:
    text = "a\u03bfb\u03bf-" * 100_000
    started = time.process_time()

    lines = [summary_of("write", {"text": text}), summary_of("write", {text: 1})]

    assert all(line.lower().count("03bf") > 5 for line in lines)
    assert time.process_time() - started < 0.5  # to the end, each would take a second


def test_a_summary_fits_on_one_line() -> None:
    line = summary_of("write", {"text": "x\n" * 500})
    assert "\n" not in line
    assert len(line) == 100
    assert summary_of("write", None) == "write()"


def hostile() -> ApprovalArtifact:
    return ApprovalArtifact(
        EVIL, EVIL, EVIL, claim=EVIL, reasons=(EVIL,), user=EVIL, requester=EVIL, arguments={EVIL: EVIL}, preview=EVIL
    )


class Reader(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)


def test_html_has_no_element_others_wrote() -> None:
    reader = Reader()
    reader.feed(to_html(hostile()))
    assert reader.tags <= {"article", "section", "h3", "p", "pre", "bdi"}
    assert reader.attributes <= {"class", "role", "data-approval-id"}
    assert "\x1b" not in to_html(hostile())


def test_markdown_keeps_others_words_inside_fences() -> None:
    text = to_markdown(hostile())
    outside = re.sub(r"(?ms)^(`{3,})\w+\n.*?^\1$", "", text)
    assert "javascript" not in outside
    assert "<script" not in outside
    assert "# Approved" not in outside


def test_a_terminal_gets_no_escape_sequence_but_ours() -> None:
    drawn = to_terminal(hostile())
    assert set(re.findall(r"\x1b\[[^m]*m?", drawn)) <= {f"\x1b[{code}m" for code in (0, 1, 2, 31, 32, 33, 36)}
    assert "WARNING" in drawn
    assert "\u202e" not in drawn


def test_plain_lines_of_others_stand_behind_the_margin() -> None:
    lines = to_plain(hostile()).split("\n")
    ours = [line for line in lines if not line.startswith("  | ")]
    assert all(line.startswith(("Question", "Facts", "Arguments", "What", "! WARNING")) for line in ours)


@pytest.mark.parametrize("draw", [to_plain, to_terminal, to_markdown, to_html])
def test_what_is_hidden_must_be_expanded_and_then_is_there(draw: Any) -> None:
    artifact = an_artifact(arguments={"text": "y" * 5000 + "MIDDLE" + "y" * 5000}, preview="+a\n-b\n@@ c\n d")
    assert artifact.must_expand
    assert "expand them before approving" in draw(artifact)
    assert "MIDDLE" not in draw(artifact)
    assert "MIDDLE" in draw(artifact, full=True)
    assert "expand them" not in draw(artifact, full=True)


@pytest.mark.parametrize(
    ("tool", "arguments", "line"),
    [
        ("execute_command", {"command": "npm", "args": ["test"]}, "Execute npm test"),
        ("execute_command", {"command": "git", "args": ["commit", "-m", "a b"]}, "Execute git commit -m 'a b'"),
        ("execute_command", {"command": "ls"}, "Execute ls"),
        ("execute_command", {"command": "ls", "args": "-l"}, 'Run execute_command(command="ls", args="-l")'),
        ("write_file", {"path": "src/a.py", "content": "x"}, "Write src/a.py"),
        ("write_file", {"path": "a\u202eb\nc"}, "Write a⟦U+202E⟧b ⏎ c"),
        ("pay", {"amount": 5}, "Run pay(amount=5)"),
        ("pay", None, "Run pay()"),
        ("execute_command", {"command": "x" * 300}, f"Execute {'x' * 191}…"),
    ],
)
def test_a_deed_says_what_would_be_done(tool: str, arguments: Any, line: str) -> None:
    asked = an_approval(tool_name=tool, message=f"Run {tool}?", arguments=arguments)
    assert deed_of(asked) == line


def test_a_deed_is_told_in_the_words_of_who_has_some() -> None:
    assert deed_of(an_approval(message="May I send it?", arguments={"command": "rm"})) == "May I send it?"


def test_a_part_is_read_in_pieces_that_together_are_all_of_it() -> None:
    artifact = an_artifact(arguments={"text": "x\u202e" * 3000, "lines": ["é"] * 3000})
    whole = next(block for block in artifact.blocks(full=True) if block.name == "arguments")
    offset: int | None = 0
    pieces = []
    while offset is not None:
        piece = artifact.piece("arguments", offset=offset, size=1000)
        assert (piece.title, piece.offset, piece.characters) == ("Arguments", offset, len(whole.text))
        assert piece.warnings == whole.warnings
        pieces.append(piece.text)
        offset = piece.next
    assert "".join(pieces) == whole.text
    assert len(pieces) > 10
    assert not any(re.search(r"\\(u[0-9a-f]{0,3})?$", piece) for piece in pieces)


@pytest.mark.parametrize("unit", ["⟦U+202E⟧", "\\udb40\\udc41", "***", "\\n", "e\u0301\u0300", "a\u200d\ufe0f"])
def test_a_piece_never_ends_inside_what_belongs_together(unit: str) -> None:
    text = "abc" + unit + "def"
    for size in range(1, len(text)):
        ends_at = cut_piece(text, 0, size).end
        assert not 3 < ends_at < 3 + len(unit)


def test_a_piece_ends_with_a_line_where_one_ends_near() -> None:
    assert cut_piece("a" * 90 + "\n" + "b" * 90, 0, 100) == ("a" * 90 + "\n", 91)


def test_a_piece_of_nothing_is_refused_with_a_sentence() -> None:
    artifact = an_artifact()
    with pytest.raises(NotFoundError, match="it has question, facts, arguments"):
        artifact.piece("secrets")
    with pytest.raises(UsageError, match="from 1 to"):
        artifact.piece("arguments", size=BUDGET.most + 1)
    with pytest.raises(UsageError):
        artifact.piece("arguments", offset=-1)
    assert artifact.piece("arguments", offset=10**9).text == ""


def test_what_is_shown_at_first_is_bounded_however_much_there_is() -> None:
    many = {f"key\u202e{number}": "a\u200b" * number for number in range(300)}
    change, claim = {"diff": "+x\n" * 100_000}, "y" * 100_000
    artifact = an_artifact(arguments=many, preview=change, claim=claim, answers=("z" * 9999,))
    shown = artifact.blocks()
    assert all(len(block.text) < BUDGET.characters + 200 for block in shown)
    assert all("hidden …⟧" in block.text for block in shown if block.hidden)
    assert len(artifact.warnings) < 30
    assert "more warnings" in artifact.warnings[-1]
    assert artifact.must_expand
    assert max(map(len, (to_plain(artifact), to_terminal(artifact), to_html(artifact)))) < 100_000


def test_values_no_encoder_writes_are_shown_all_the_same() -> None:
    deep: Any = "end\ud800"
    for _ in range(5000):
        deep = [deep]
    pair = Block("title", "text")
    assert "title" in to_plain(an_artifact(arguments={"pair": pair}))
    shown = to_plain(an_artifact(arguments={"deep": deep, "big": 2**80, "at": {1: object}}), full=True)
    assert "end\\ud800" in shown
    assert str(2**80) in shown


def test_a_list_of_a_card_says_how_many_more_there_are() -> None:
    assert clip_entries(["one"]) == ["one"]
    assert clip_entries(["one"] * (BUDGET.entries + 3))[-1] == "⟦… 3 more hidden …⟧"
    assert "characters hidden" in clip_field("x" * (BUDGET.field + 1))


@pytest.mark.parametrize(
    "preview", [None, "+a", {"diff": "+a"}, {"diff": "+a", "path": "b"}, {"rows": 3}, {"diff": 3, "path": "b"}, [1]]
)
def test_the_parts_of_a_preview_have_the_names_of_its_blocks(preview: Any) -> None:
    names = tuple(block.name for block in an_artifact(preview=preview).blocks(full=True))
    assert tuple(name for name in names if name in ("change", "about")) == preview_parts(preview)


def test_an_approver_sees_how_many_must_approve_and_who_is_still_missing() -> None:
    terms = ApprovalTerms(quorum=2, approvers=(frozenset({"finance"}),), including=(frozenset({"lead", "cfo"}),))
    at = an_approval().created_at
    votes = (Note("ann", at), Note("bob", at))
    shown = artifact_of(an_approval(terms=terms, votes=votes))
    facts = next(block.text for block in shown.blocks() if block.name == "facts")
    assert "Must approve: 2 people with role finance, at least 1 of them with role cfo or lead" in facts
    assert shown.answers == (
        "ann approved (1 of 2)",
        "bob approved (2 of 2)",
        "nobody with role cfo or lead has approved yet",
    )
    assert artifact_of(an_approval()).must_approve == ""


def test_each_finding_stands_on_a_line_of_its_own_whatever_its_shape() -> None:
    facts = {"theirs": "a word\n\u202e", "hosts": [{"host": "a"}, {"host": "a"}], "own": {"x": [], "in": [{"y": 1}]}}
    [block] = [one for one in an_artifact(facts=facts).blocks() if one.name == "found"]
    assert block.text.split("\n") == [
        'theirs: "a word\\n\\u202e"', 'hosts: { "host": "a" }', 'own: { "x": [] }', 'own in: { "y": 1 }',
    ]  # fmt: skip
    assert any("bidirectional" in warning for warning in block.warnings)
