"""What an approver sees: the facts of one question in a fixed order, the agent's own words fenced off as its claim.

The artifact is data; `surfaces` draws it on a terminal, in HTML, Markdown or plain text.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Any, Final, NamedTuple

from toolgate.errors import NotFoundError, UsageError
from toolgate.kernel.approval import Approval, plain_question
from toolgate.kernel.text.rendering import BUDGET, brief, clip, cut_piece, few, lay_out, reveal

OPTIONS: Final = ("approve", "deny")
FOUND: Final = "What the policy found in the arguments"
CLAIM: Final = "What the agent says (its claim, not checked)"


class Style(StrEnum):
    """How the lines of a block are drawn."""

    FACT = "fact"
    CODE = "code"
    DIFF = "diff"
    CLAIM = "claim"


class Block(NamedTuple):
    """One part of what is shown. `hidden` characters are left out until the approver expands them."""

    title: str
    text: str
    style: Style = Style.FACT
    warnings: tuple[str, ...] = ()
    hidden: int = 0
    name: str = ""


class Piece(NamedTuple):
    """A piece of one part of what is shown, out of `characters` and `lines` in all; `next` is where another begins."""

    name: str
    title: str
    text: str
    style: Style
    offset: int
    next: int | None
    characters: int
    lines: int
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class ApprovalArtifact:
    """One question, as it is put to a person. `arguments`, `preview`, `facts` and all texts are masked already."""

    request_id: str
    tool_name: str
    message: str
    options: list[str] = field(default_factory=lambda: list(OPTIONS))
    action_summary: str = ""
    arguments: Any = None
    preview: Any = None
    facts: Any = None
    claim: str | None = None
    requester: str = ""
    user: str | None = None
    project: str = ""
    run_id: str | None = None
    level: str = "quick"
    risk: str = "low"
    reasons: tuple[str, ...] = ()
    confidence: int | None = None
    factors: tuple[str, ...] = ()
    undoable: bool = False
    undo_ttl_s: float | None = None
    created_at: datetime | None = None
    expires_at: datetime | None = None
    digest: str = ""
    requires_reason: bool = False
    answers: tuple[str, ...] = ()
    approve_label: str = "Approve"
    reject_label: str = "Reject"
    must_approve: str = ""

    def blocks(self, *, full: bool = False) -> tuple[Block, ...]:
        """Return everything an approver must see, in order; `full` leaves nothing out."""
        return self._whole if full else self._clipped

    def piece(self, name: str, *, offset: int = 0, size: int = BUDGET.piece) -> Piece:
        """Return a piece of one part, as `blocks(full=True)` has it; `name` is the block's.

        Everything was masked and made safe to show before it is cut. Raises NotFoundError where there is no such part.
        """
        if not (offset >= 0 and 1 <= size <= BUDGET.most):
            raise UsageError(f"A piece begins at 0 or later and has from 1 to {BUDGET.most:,} characters.")
        for block in self._whole:
            if block.name == name:
                text, end = cut_piece(block.text, offset, size)
                more = end if end < len(block.text) else None
                characters, lines = len(block.text), block.text.count("\n") + 1
                return Piece(name, block.title, text, block.style, offset, more, characters, lines, block.warnings)
        known = ", ".join(block.name for block in self._whole)
        raise NotFoundError(f"The question has no part {name[:64]!r}; it has {known}.")

    @cached_property
    def _whole(self) -> tuple[Block, ...]:
        """Every part in full. It is made once, however often it is drawn."""
        parts = [
            _texts("question", "Question", [self.message]),
            _facts(self._facts()),
            _json("arguments", "Arguments", self.arguments),
            *_preview(self.preview),
        ]
        if self.facts:
            parts.append(_found(self.facts))
        if self.claim:
            parts.append(_texts("claim", CLAIM, [self.claim], Style.CLAIM))
        return tuple(parts)

    @cached_property
    def _clipped(self) -> tuple[Block, ...]:
        clipped = [(block, clip(block.text)) for block in self._whole]
        return tuple(block._replace(text=shown.text, hidden=shown.hidden) for block, shown in clipped)

    def _facts(self) -> list[tuple[str, str]]:
        asks = self.requester if self.user is None else f"{self.requester} on behalf of {self.user}"
        known = [
            ("Tool", self.tool_name),
            ("Asked by", asks),
            ("Project", self.project),
            ("Run", self.run_id or ""),
            ("Risk", self.risk),
            ("Why it asks", "; ".join(self.reasons)),
            ("Confidence", "" if self.confidence is None else f"{self.confidence} of 100"),
            ("Confidence factors", "; ".join(self.factors)),
            ("Undo", _undo(self.undoable, self.undo_ttl_s)),
            ("Level", self.level),
            ("Must approve", self.must_approve),
            ("Answers so far", "; ".join(self.answers)),
            ("A rejection needs", "a reason" if self.requires_reason else ""),
            ("Expires", "" if self.expires_at is None else f"{self.expires_at:%Y-%m-%d %H:%M:%S} UTC"),
            ("Digest", self.digest),
        ]
        return [(name, value) for name, value in known if value]

    @property
    def warnings(self) -> tuple[str, ...]:
        """Everything suspicious anywhere in what is shown, each named once."""
        return few(warning for block in self._whole for warning in block.warnings)

    @property
    def must_expand(self) -> bool:
        """Whether something is left out at first, so that approving has to wait until it was shown in full."""
        return any(block.hidden for block in self.blocks())

    def to_dict(self) -> dict[str, Any]:
        """Return the artifact as JSON types, with its warnings and what is hidden at first."""
        shown = {name: getattr(self, name) for name in self.__dataclass_fields__}
        for name in ("created_at", "expires_at"):
            shown[name] = None if shown[name] is None else shown[name].isoformat()
        for name in ("reasons", "factors", "answers"):
            shown[name] = list(shown[name])
        shown["warnings"] = list(self.warnings)
        shown["must_expand"] = self.must_expand
        return shown


def artifact_of(approval: Approval) -> ApprovalArtifact:
    """Return what an approver of this question must see."""
    return ApprovalArtifact(
        request_id=approval.id,
        tool_name=approval.tool_name,
        message=approval.message,
        action_summary=summary_of(approval.tool_name, approval.arguments),
        arguments=approval.arguments,
        preview=approval.preview,
        facts=approval.facts,
        requester=approval.requester,
        user=approval.user,
        project=approval.project,
        run_id=approval.run_id,
        level=approval.level,
        risk=approval.risk,
        reasons=approval.reasons,
        confidence=approval.confidence,
        undoable=approval.undoable,
        created_at=approval.created_at,
        expires_at=approval.expires_at,
        digest=approval.digest,
        requires_reason=approval.requires_reason,
        claim=approval.claim,
        factors=approval.factors,
        undo_ttl_s=approval.undo_ttl_s,
        answers=_answers(approval),
        approve_label=approval.approve_label or "Approve",
        reject_label=approval.reject_label or "Reject",
        must_approve=approval.terms.who() if approval.terms.is_picky else "",
    )


def _answers(approval: Approval) -> tuple[str, ...]:
    """What has been said so far: votes, comments, and what somebody changed before."""
    needed = max(approval.terms.quorum, len(approval.votes))
    votes = [f"{vote.who} approved ({number} of {needed})" for number, vote in enumerate(approval.votes, 1)]
    if votes:
        votes += [f"nobody with role {' or '.join(sorted(roles))} has approved yet" for roles in approval.lacks]
    notes = [f"{note.by}: {note.text}" for note in approval.comments]
    edited = [f"edited from {approval.edited_from}"] if approval.edited_from else []
    waiting = [f"{needed} people must approve"] if needed > 1 and not votes else []
    return (*edited, *waiting, *votes, *notes)


def summary_of(tool_name: str, arguments: Any, *, width: int = 100) -> str:
    """Return one line that says what would run: the tool and the beginning of its arguments."""
    given = arguments if isinstance(arguments, Mapping) else {}
    line = f"{tool_name}("
    separator = ""
    for key, value in given.items():
        line += f"{separator}{_beginning(str(key))}={brief(value, width)}"
        separator = ", "
        if len(line) > width:
            break
    line += ")"
    return line if len(line) <= width else f"{line[: width - 1]}…"


def deed_of(approval: Approval, *, width: int = 200) -> str:
    """Return one line that says what would be done: the words of the caller or the tool, else what it would run with.

    A command is named as a shell would take it, and a file by its path, as they are: `Execute npm test`.
    """
    if approval.message != plain_question(approval.tool_name):
        return approval.message
    given = approval.arguments if isinstance(approval.arguments, Mapping) else {}
    command, args, path = given.get("command"), given.get("args", []), given.get("path")
    if isinstance(command, str) and isinstance(args, list):
        line = f"Execute {_beginning(shlex.join(map(str, (command, *args))))}"
    elif isinstance(path, str) and approval.tool_name in _VERBS:
        line = f"{_VERBS[approval.tool_name]} {_beginning(path)}"
    else:
        line = f"Run {summary_of(approval.tool_name, given, width=width)}"
    line = line.replace("\n", " ⏎ ")
    return line if len(line) <= width else f"{line[: width - 1]}…"


def _beginning(text: str) -> str:
    """Return enough of a text for one line, safe to show."""
    return reveal(text[: BUDGET.characters]).text


_VERBS = {
    "read_file": "Read",
    "write_file": "Write",
    "edit_file": "Change",
    "delete_file": "Delete",
    "list_directory": "List",
}


def _undo(undoable: bool, ttl_s: float | None) -> str:
    if not undoable:
        return "cannot be undone"
    if ttl_s is None:
        return "can be undone"
    minutes = round(ttl_s / 60)
    return f"can be undone for {minutes} minutes" if minutes > 1 else f"can be undone for {ttl_s:g} seconds"


def _texts(name: str, title: str, texts: Iterable[str], style: Style = Style.FACT) -> Block:
    shown = [reveal(text) for text in texts]
    # A carriage return is left only where it belongs to the end of a line.
    text = "\n".join(one.text for one in shown).replace("\r\n", "\n")
    return Block(title, text, style, few(warning for one in shown for warning in one.warnings), name=name)


def _facts(facts: Iterable[tuple[str, str]]) -> Block:
    """Lay facts out one to a line; a line break inside a value must not begin another fact."""
    one_line = ((name, value.replace("\n", " ⏎ ")) for name, value in facts)
    return _texts("facts", "Facts", [f"{name}: {value}" for name, value in one_line])


def _json(name: str, title: str, value: Any) -> Block:
    shown = lay_out(value)
    return Block(title, shown.text, Style.CODE, shown.warnings, name=name)


def _found(facts: Mapping[str, Any]) -> Block:
    """Lay out what was found, one finding to a line: its name, and exactly its value."""
    lines: dict[str, None] = {}
    warnings: list[str] = []
    for name, finding in facts.items():
        for label, value in _findings(name, finding):
            shown = lay_out(value)  # no line of it breaks inside a text
            lines[f"{label}: {' '.join(line.strip() for line in shown.text.split(chr(10)))}"] = None
            warnings += shown.warnings
    return Block(FOUND, "\n".join(lines), Style.CODE, few(warnings), name="found")


def _findings(name: str, finding: Any) -> Iterator[tuple[str, Any]]:
    """Yield each finding of an inspector by itself; one that holds lists of others, such as paths, before these."""
    if isinstance(finding, list):
        yield from ((name, one) for one in finding)
        return
    if not isinstance(finding, dict):
        yield name, finding
        return
    inner = {key: value for key, value in finding.items() if _holds_findings(value)}
    yield name, {key: value for key, value in finding.items() if key not in inner}
    for key, value in inner.items():
        yield from ((f"{name} {key}", one) for one in value)


def _holds_findings(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) for one in value)


def preview_parts(preview: Any) -> tuple[str, ...]:
    """Return the names of the parts a preview is shown in, in order."""
    if preview is None:
        return ()
    is_told = isinstance(preview, Mapping) and isinstance(preview.get("diff"), str) and len(preview) > 1
    return ("change", "about") if is_told else ("change",)


def _preview(preview: Any) -> list[Block]:
    title = "What it would change"
    if preview is None:
        return []
    if isinstance(preview, str):
        return [_texts("change", title, [preview], Style.DIFF)]
    if isinstance(preview, Mapping) and isinstance(preview.get("diff"), str):
        rest = {name: value for name, value in preview.items() if name != "diff"}
        diff = _texts("change", title, [preview["diff"]], Style.DIFF)
        return [diff, _json("about", "About the change", rest)] if rest else [diff]
    return [_json("change", title, preview)]
