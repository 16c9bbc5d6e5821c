"""Drawing an approval artifact on a terminal, in HTML, in Markdown and as plain text.

Whatever others wrote stands in lines of its own, behind a margin or inside quoting it cannot end, so that it can
neither act as markup nor imitate the frame around it.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from toolgate.kernel.artifact import ApprovalArtifact, Block, Style
from toolgate.kernel.text.rendering import reveal

_RESET, _BOLD, _DIM, _RED, _GREEN, _YELLOW, _CYAN = (f"\x1b[{code}m" for code in (0, 1, 2, 31, 32, 33, 36))
_BACKTICKS = re.compile(r"`+")


def to_plain(artifact: ApprovalArtifact, *, full: bool = False) -> str:
    """Draw without colours; every line others wrote begins with a bar."""
    return "\n".join(_draw(artifact, full, colour=False))


def to_terminal(artifact: ApprovalArtifact, *, full: bool = False) -> str:
    """Draw with colours; the only escape sequences in it are ours."""
    return "\n".join(_draw(artifact, full, colour=True))


def _draw(artifact: ApprovalArtifact, full: bool, *, colour: bool) -> Iterator[str]:
    blocks = artifact.blocks(full=full)
    for block in blocks:
        yield _paint(block.title, colour, _BOLD, *((_YELLOW,) if block.style is Style.CLAIM else ()))
        for warning in block.warnings:
            yield _paint(f"! WARNING: {warning}", colour, _BOLD, _RED)
        yield draw_lines(block.text, block.style, colour=colour)
    hidden = sum(block.hidden for block in blocks)
    if hidden:
        yield _paint(f"! {hidden:,} characters are hidden; expand them before approving.", colour, _BOLD, _YELLOW)


def draw_lines(text: str, style: Style, *, colour: bool) -> str:
    """Draw lines that others wrote, each behind a bar; a change in the colours of changes."""
    if colour and style is Style.DIFF:
        text = _CHANGED.sub(lambda line: f"{_CHANGES[line.group(1)]}{line.group()}{_RESET}", text)
    margin = _paint("  | ", colour, _DIM)
    return margin + text.replace("\n", f"\n{margin}")


def _paint(text: str, colour: bool, *codes: str) -> str:
    return f"{''.join(codes)}{text}{_RESET}" if colour else text


_CHANGED = re.compile("^([-+@]).*$", re.MULTILINE)
_CHANGES = {"+": _GREEN, "-": _RED, "@": _CYAN}


def to_markdown(artifact: ApprovalArtifact, *, full: bool = False) -> str:
    """Draw as Markdown; what others wrote is in code fences longer than any they could close."""
    parts: list[str] = []
    blocks = artifact.blocks(full=full)
    for block in blocks:
        fence = "`" * max(3, 1 + max(map(len, _BACKTICKS.findall(block.text)), default=0))
        language = "diff" if block.style is Style.DIFF else "text"
        parts += [f"**{block.title}**", *(f"> WARNING: {warning}" for warning in block.warnings)]
        parts.append(f"{fence}{language}\n{block.text}\n{fence}")
    hidden = sum(block.hidden for block in blocks)
    if hidden:
        parts.append(f"**{hidden:,} characters are hidden; expand them before approving.**")
    return "\n\n".join(parts) + "\n"


def to_html(artifact: ApprovalArtifact, *, full: bool = False) -> str:
    """Draw as one HTML section without script, style or link; each text is isolated from the direction of others."""
    blocks = artifact.blocks(full=full)
    inner = "".join(map(_section, blocks))
    hidden = sum(block.hidden for block in blocks)
    if hidden:
        inner += f'<p class="hidden" role="alert">{hidden:,} characters are hidden; expand them before approving.</p>'
    approval_id = html.escape(reveal(artifact.request_id).text)
    return f'<article class="approval" data-approval-id="{approval_id}">{inner}</article>'


def _section(block: Block) -> str:
    warnings = "".join(f'<p class="warning" role="alert">{html.escape(warning)}</p>' for warning in block.warnings)
    lines = html.escape(block.text).replace("\n", "</bdi>\n<bdi>")
    title = html.escape(block.title)
    return f'<section class="{block.style}"><h3>{title}</h3>{warnings}<pre><bdi>{lines}</bdi></pre></section>'
