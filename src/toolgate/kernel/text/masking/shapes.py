"""Know the tokens of well-known formats by their looks, wherever they stand in a text.

Each format begins with, or holds, some words of its own: its heads. `places` finds those of all formats in one pass;
here the text around one is compared with its format.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from toolgate.kernel.text.lazy_pattern import lazy_pattern
from toolgate.kernel.text.masking.keys import Span

# A token starts at a boundary; `%3D` and `\\n` before it glue on a digit or a letter and still count as one.
_EDGE: Final = r"(?:(?<![A-Za-z0-9_\-])|(?<=%[0-9A-Fa-f]{2})|(?<=\\[nrt]))"
_EDGED: Final = (
    ("AKIA ASIA", "[0-9A-Z]{16}(?![0-9A-Za-z])"),
    ("glpat- gldt- glrt- glcbt- glptt- glft- glsoat- glagent- gloas- glffct- glimt-", r"[\w\-]{16,}"),
    ("sk-ant- sk-proj- sk-or- sk-svcacct- sk-admin- sk-lf- sk-None-", r"(?=[\w\-]*[0-9A-Z])[\w\-]{16,}"),
    ("sk-", r"(?=[A-Za-z0-9_\-]{0,64}[0-9A-Z])[A-Za-z0-9]{20,}[\w\-]*"), ("AIza", r"[\w\-]{30,}"),
    ("ya29.", r"[\w\-.]{20,}"), ("1//0", r"[\w\-]{30,}"), ("npm_", "[A-Za-z0-9]{30,}"),
    ("pypi-A", r"[\w\-]{30,}"), ("hf_", "[A-Za-z0-9]{20,}"), ("SG.", r"[\w\-]{16,64}\.[\w\-]{20,}"),
    ("doo_v1_ dop_v1_ dor_v1_", "[a-f0-9]{32,}"),
    ("shpat_ shpca_ shppa_ shpss_", "[a-fA-F0-9]{24,}"),
    ("eyJ", r"[\w\-]{17,}+\.[\w\-]{4,}+(?:\.[\w\-]*+){0,3}"), ("hvs. hvb. hvr.", r"[\w\-]{20,}"),
    ("dapi", "[a-f0-9]{32}(?:-[0-9])?"), ("lin_api_ lin_oauth_", "[A-Za-z0-9]{30,}"),
    ("secret_ ntn_", "[A-Za-z0-9]{40,}"), ("key-", "[0-9a-f]{32}(?![0-9A-Za-z])"),
    ("EAAA", r"[\w\-]{56,}"), ("sbp_", "[a-f0-9]{32,}"), ("pul-", "[0-9a-f]{40}"),
    ("r8_ gsk_", "[A-Za-z0-9]{30,}"), ("xai-", "[A-Za-z0-9]{40,}"), ("pplx-", "[A-Za-z0-9]{32,}"),
    ("ATATT3 ATCTT3 ATBB", r"[\w\-=]{24,}"), ("AKCp", "[A-Za-z0-9]{20,}"),
    ("oy2", "[a-z0-9]{43}(?![a-z0-9])"), ("fm2_", r"[\w+/=]{40,}"),
)  # fmt: skip
_ANYWHERE: Final = (
    ("ghp_ gho_ ghu_ ghs_ ghr_", "[A-Za-z0-9]{20,}"), ("github_pat_", "[A-Za-z0-9_]{20,}"),
    ("xox", r"[abceoprsd](?:\.xox[bp])?-[\w\-]{15,}"), ("xapp-", r"[0-9]-[\w\-]{12,}"),
    ("sk_live_ rk_live_ sk_test_ rk_test_", "[A-Za-z0-9]{12,}"),
    ("whsec_", "[A-Za-z0-9+/=]{16,}"), ("GOCSPX-", r"[\w\-]{20,}"), ("AGE-SECRET-KEY-1", "[A-Z0-9]{20,}"),
    ("sq0csp- sq0atp-", r"[\w\-]{20,}"), ("rubygems_", "[a-f0-9]{40,}"),
    ("dckr_pat_ dckr_oat_", r"[\w\-]{20,}"), ("glsa_", "[A-Za-z0-9]{20,}[_a-f0-9]*"),
    ("glc_", "[A-Za-z0-9+/=]{32,}"), ("NRAK-", "[A-Z0-9]{20,}"), ("PMAK-", "[a-f0-9]{20,}-[a-f0-9]{20,}"),
    ("figd_", r"[\w\-]{20,}"), ("dt0", r"[a-z][0-9]{2}\.[A-Z0-9]{20,}\.[A-Z0-9]{40,}"),
    ("sntrys_ sntryu_", r"[\w\-+/=]{32,}"), ("tskey-", r"[a-z]+-[\w\-]{16,}"),
    ("pscale_tkn_ pscale_pw_ pscale_oauth_", r"[\w\-.]{24,}"), ("CFPAT-", r"[\w\-]{32,}"),
)  # fmt: skip
# Of these only what follows the head is hidden.
_AFTER: Final = (
    ("hooks.slack.com/", r"(?:services|workflows|triggers)/[\w/+\-]{8,}"),
    ("/api/webhooks/", r"[0-9]{5,}/[\w\-]{20,}"), ("webhook.office.com/", r"[\w\-@/]{20,}"),
)  # fmt: skip
# These begin so many characters before their head.
_INSIDE: Final = (
    (":A", (8, 9, 10), r"(?:(?<![0-9A-Za-z])|(?<=bot))[0-9]{8,10}:A[\w\-]{32,40}(?![\w\-])"),
    ("-us", (32,), "(?<![0-9A-Za-z])[0-9a-f]{32}-us[0-9]{1,2}(?![0-9A-Za-z])"),
    (".atlasv1.", (0,), r"(?<=[A-Za-z0-9]{14})\.atlasv1\.[\w\-]{40,}"),
)


class Shape(NamedTuple):
    """One format: its head as it is written, where before the head it may begin, and the whole of it."""

    head: str
    backs: tuple[int, ...]
    pattern: re.Pattern[str]


def _shapes() -> Iterable[Shape]:
    for before, rows in ((_EDGE, _EDGED), ("", _ANYWHERE)):
        for heads, rest in rows:
            for head in heads.split():
                yield Shape(head, (0,), lazy_pattern(before + re.escape(head) + rest))
    for head, rest in _AFTER:
        yield Shape(head, (-len(head),), lazy_pattern(rest))
    for head, backs, pattern in _INSIDE:
        yield Shape(head, backs, lazy_pattern(pattern))


SHAPES: Final = tuple(_shapes())


def shape_spans(shape: Shape, text: str, places: list[int]) -> list[Span]:
    """Return where the tokens lie whose heads stand at these places."""
    head, backs, match_at = shape.head, shape.backs, shape.pattern.match
    spans: list[Span] = []
    done = 0
    for at in places:
        if at >= done and text.startswith(head, at):
            for back in backs:
                match = match_at(text, at - back) if at >= back else None
                if match:
                    spans.append(match.span())
                    done = match.end()
                    break
    return spans


_PPK: Final = lazy_pattern(r"Private-Lines: [0-9]{1,4}\s{1,2}((?:[A-Za-z0-9+/=]{1,76}\s{1,2})+)")
PPK_HEAD: Final = "Private-Lines: "


def ppk_span(text: str, at: int) -> Span | None:
    """Return where the private part of a PuTTY key lies whose head stands at this place."""
    match = _PPK.match(text, at)
    return match.span(1) if match else None


# Formats without a head that would not be met everywhere. All hold a run of so many letters, digits, `_` and `-`.
RUN: Final = b"a" * 27
RUNS: Final = bytes(97 if chr(code).isalnum() or chr(code) in "_-" else 32 for code in range(128)) + b" " * 128
"""Makes an `a` of every byte of a text that may belong to such a run, and a blank of any other."""
_BOT_PARTS: Final = lazy_pattern(r"\.[\w\-]{6}\.(?=[\w\-]{27})")
_BOT: Final = lazy_pattern(
    r"[MNO](?<![\w\-][MNO])[\w\-]{22,27}\.[\w\-]{6}\.(?=[\w\-]*[0-9])(?=[\w\-]*[A-Z])[\w\-]{27,45}(?![\w\-.])"
)
_BOT_ID: Final = range(23, 29)
_SK: Final = lazy_pattern(
    r"SK(?:(?<![A-Za-z0-9_\-]SK)|(?<=%[0-9A-Fa-f]{2}SK)|(?<=\\[nrt]SK))[0-9a-f]{32}(?![0-9A-Za-z])"
)

_SK_ANYWHERE: Final = lazy_pattern("SK[0-9a-f]{32}")


def may_be_headless(text: str) -> bool:
    """Whether `headless_spans` could find something in a text that is written as JSON here.

    An escape such as `\\n` ends in a letter, so what stands before a token says nothing.
    """
    return _BOT_PARTS.search(text) is not None or ("SK" in text and _SK_ANYWHERE.search(text) is not None)


def headless_spans(text: str) -> list[Span]:
    """Return where tokens lie that are known by their whole form alone, such as those of chat bots."""
    if RUN not in text.encode("ascii", "replace").translate(RUNS):
        return []
    spans = [match.span() for match in _SK.finditer(text)]
    for parts in _BOT_PARTS.finditer(text):
        tried = (_BOT.match(text, parts.start() - before) for before in _BOT_ID if before <= parts.start())
        spans += [match.span() for match in tried if match][:1]
    return spans
