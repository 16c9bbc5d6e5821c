"""Find where the value of a key ends in a text, and whether it reads as a secret.

How a value reads is judged in `keys`, by its start; only one that is masked is followed to its end.
"""

from __future__ import annotations

import re
import sys
from typing import Final, NamedTuple

from toolgate.kernel.text.lazy_pattern import lazy_pattern
from toolgate.kernel.text.masking.keys import (
    Span,
    Style,
    Verdict,
    is_about,
    is_passphrase,
    is_plain_api_key,
    reads_as_secret,
)

Spans = list[Span]


class Claim(NamedTuple):
    """A key that names a secret, and where its value starts."""

    verdict: Verdict
    key: str
    op: str
    start: int
    value_at: int


_OPENING: Final = lazy_pattern(r"(?:[fFrRbBuUL@$]{1,2}(?=[\"'`]))?(?P<escape>\\{0,7})(?P<quote>\"\"\"|'''|[\"'`])")
_BLOCK: Final = lazy_pattern(r"[|>][\-+0-9]{0,2}[ \t]*\n(?P<indent>[ \t]+)(?P<body>[^\n]*(?:\n(?P=indent)[^\n]*)*)")
_LITERAL: Final = lazy_pattern(
    r"(?P<b>\\{0,7})(?P<q>[\"'])(?P<body>(?:(?!(?P=b)(?P=q))[^\n]){0,1000})(?P=b)(?P=q)(?P<key>\s{0,4}(?::|=>))?"
)
_SCHEMA: Final = lazy_pattern(r"[\"']type\\*[\"']\s?:\s?\\*[\"'](?:string|integer|number|object|array|boolean)\\*[\"']")
_BRACKET: Final = lazy_pattern(r"[\[\](){}]")
_QUERY: Final = lazy_pattern(r"[^\s&#\"'<>\\`]+")
_ESCAPED: Final = lazy_pattern(r"(?:%22)?(?P<body>(?:[^\s&%\"']|%(?!26|22|7[dD]|2[cC]))+)")
_XML: Final = lazy_pattern(r"[^<]+")
_BARE_CHAR: Final = (
    r"(?:[^\s\"'`<>,;&\\)\]}|${]{1,32}+"
    r"|\$?\{\{?[^{}\n]{0,80}\}\}?|\$\([^()\n]{0,80}\)|<[^<>\n]{1,60}>"
    r"|[^\s\"'`<>,;&\\)\]}|]"
    r"|[,;&|)\]}]*[,;&|](?=[^\s\"'`,;&|)\]}])(?![A-Za-z_][\w.\-%]{1,40}(?:=|:\s))|[)\]}]+(?=[^\s\"'`,;&|)\]}:])"
    r"|[\"'`](?=\w)"
    r"|<(?![/a-zA-Z!\s])|>(?=\S)"
    r"|\\(?![nrt\"'\\\s]))"
)
_LONGEST_BARE: Final = 256
_BARE: Final = lazy_pattern(_BARE_CHAR + "+")
_BARE_END: Final = lazy_pattern(_BARE_CHAR + "*")
_LINE: Final = lazy_pattern(r"[^\n\r]{0,120}")
_LINE_START: Final = lazy_pattern(
    r"(?:^|(?<=[\n\r]))[ \t]*(?:(?:export|set|ENV|ARG|declare -x|-e|-|\$env:|#)[ \t]*)?\Z"
)
_HEADER_END: Final = lazy_pattern(r"(?:[^\n\r\"'`\\]|\\(?![nr\"'])|[\"'](?=[\w=,])|(?<==)[\"'])*")
_HEADERS: Final = ("authorization", "cookie", "cookies")
_COOKIE: Final = lazy_pattern(r"[\w.$\-]{1,128}=\S")
_WHOLE_SCHEME: Final = lazy_pattern(r"(?:Digest|Hawk|Signature|AWS4-HMAC-SHA256|OAuth)[ \t]+\w+=", re.IGNORECASE)
_SCHEME: Final = lazy_pattern(
    r"(?:Bearer|Basic|Token|ApiKey|Api-Key|Bot|JWT|GoogleLogin|SSWS|Negotiate|Splunk|OAuth)[ \t]+", re.IGNORECASE
)
_AFTER_CLOSING: Final = ("", " ", ",", ")", ";", "]", "}", "\n", "\r")
_FIELD_NAME: Final = lazy_pattern(r"[A-Za-z]+(?:[_\- ][A-Za-z]+)*")
_DIGITS_UNQUOTED: Final = lazy_pattern(r"[^\d\"'`]*\d[^\"'`]*")
_BRACKETS: Final = frozenset({"()", "[]", "{}"})
_OPEN_BRACKETS: Final = frozenset("([{")
_CONTAINER: Final = 2000
_LONGEST_LINES: Final = 400
_QUOTES: Final = frozenset("\"'`\\")
_REACH: Final = 448
_MAX_QUIET: Final = 64
JUDGED: Final = 4096
"""So much of a value says how it reads."""
_LONGEST_NAME: Final = 200
_SAID: Final = lazy_pattern(r"(?:is|was|to):?[ \t]{1,4}\Z")
_ALGORITHM: Final = lazy_pattern(
    r"(?:(?:sha|md|base|utf|aes|rsa|v|oauth|https?|pbkdf|argon|b?crypt|scrypt|ed|es|hs|rs|py|s)[-_]?\d{1,4}|\d{1,4})"
    r"(?:[-_][A-Za-z]+)*[.,;:!?]*",
    re.IGNORECASE,
)
_LOGIN: Final = (
    r"(?i:user(?:name)?|uid|login|account|e?mail|host(?:name)?|server|database|db|port)[ \t:=]{1,3}"
    r"(?!(?:and|or|is|in|of|for|with|the|this|that|a|an|my|your|our|its|to|by|on|as|has)\b)[^\s,;]"
)
_LONGEST_ITEM: Final = 100
_LISTED_BEFORE: Final = lazy_pattern(rf"\b{_LOGIN}[^\s,;]{{0,64}}[,;]?[ \t]{{1,4}}(?:and[ \t])?\Z")
_LISTED_AFTER: Final = lazy_pattern(rf"[,;]?[ \t]{{1,4}}(?:and[ \t]{{1,4}})?{_LOGIN}")
_MIXED: Final = lazy_pattern(
    r"(?=.{6})(?=[^0-9]{0,64}[0-9])(?=[^A-Za-z]{0,64}[A-Za-z])[A-Za-z0-9!@#$%^&*_+=\-]+|[0-9]{8,}"
)
_GIVEN_WORD: Final = lazy_pattern(r"[^\s\"'`<>,;]{3,}")
_SAID_SIGN: Final = lazy_pattern(r"\S{0,40}[\d@#$%^&*_+=]")
_SAID_WORD: Final = lazy_pattern(r"(?=\S{0,40}[A-Za-z])[^\s\"'`<>]{6,}")
_SIMPLE: Final = frozenset(("=", ":", "=>", ":="))
_USUAL: Final = lazy_pattern(
    r"[ \t]{0,64}+(?:(?P<quote>[\"'`])|(?P<scheme>(?i:bearer|token)[ \t]{1,8}+)|)"
    r"(?=[A-Za-z_\-]{0,64}+[0-9])(?=[0-9_\-]{0,64}+[A-Za-z])"
    r"(?P<value>[A-Za-z0-9_\-]{8,256}+=?=?)(?(quote)(?P=quote)|(?=\s|\Z))"
)
_KEYED: Final = lazy_pattern(r"\\{0,7}[\"'`][ \t]{0,8}(?:=|:[ \t]{0,8}[^\s])")
_OPENERS: Final = frozenset("fFrRbBuUL@$\\\"'`")


class Values:
    """Reads the values of one text's keys in the order of the text; no part of it is read for every key again."""

    __slots__ = ("_container_from", "_newline", "_quiet", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._container_from = 0
        self._newline = -1
        # Surroundings in which nothing was found: a text that repeats itself is judged once.
        self._quiet: set[tuple[int, str, bool]] = set()

    def spans(self, claim: Claim) -> Spans:
        """Return the parts to hide of the value this key has."""
        text, at = self._text, claim.value_at
        first = text[at : at + 1]
        boxed = first in _OPEN_BRACKETS and claim.op not in ("said", "xml", "query")
        if boxed and at >= self._container_from:
            return self._container(claim)
        around = (at - claim.start, text[max(0, claim.start - 2) : at + _REACH], boxed)
        if around in self._quiet:
            return []
        opening = _OPENING.match(text, at) if first in _OPENERS and claim.op != "xml" else None
        spans = self._quoted(claim, opening) if opening and not _is_closing(text, claim, opening) else None
        if boxed:
            spans = _open_spans(text, claim)
        elif spans is None:
            spans = _unquoted_spans(text, claim)
        if not spans and first not in _QUOTES and len(self._quiet) < _MAX_QUIET:
            self._quiet.add(around)
        return spans

    def _quoted(self, claim: Claim, opening: re.Match[str]) -> Spans:
        text, begin, quote = self._text, opening.end(), opening["quote"]
        stop = _closing(text, begin, quote, len(opening["escape"]))
        if len(quote) == 1 and ("=" not in claim.op or stop - begin > _LONGEST_LINES):
            stop = min(stop, self._line_end(begin))
        inner = text[begin : min(stop, begin + JUDGED)]
        if claim.op == "said" and (
            _KEYED.match(text, stop) or (claim.verdict < Verdict.SECRET and not _is_mixed(inner))
        ):
            return []
        if claim.key.lower().endswith(_HEADERS) and not (claim.op == "call" and _is_field_name(inner)):
            return _header_span(text, claim, begin, stop)
        compared = claim.op in ("==", "===") and claim.verdict < Verdict.SECRET
        if (claim.op == "call" or compared) and _is_field_name(inner):
            return []
        return [(begin, stop)] if reads_as_secret(inner, "", claim.verdict, Style.QUOTED) else []

    def _line_end(self, at: int) -> int:
        if self._newline < at:
            found = self._text.find("\n", at)
            self._newline = len(self._text) if found < 0 else found
        return self._newline

    def _container(self, claim: Claim) -> Spans:
        text, begin = self._text, claim.value_at
        stop = _matching_bracket(text, begin)
        # An unclosed bracket is scanned once: later keys inside the scanned part do not scan it again.
        self._container_from = stop if stop > begin else begin + _CONTAINER
        if stop == begin:
            return _open_spans(text, claim)
        if _SCHEMA.search(text, begin, stop):
            return []
        return [
            literal.span("body")
            for literal in _LITERAL.finditer(text, begin, stop)
            if not literal["key"] and reads_as_secret(literal["body"], "", claim.verdict, Style.QUOTED)
        ]


def usual_span(text: str, at: int, op: str | None, key: str) -> tuple[int, int] | None:
    """Return where a secret of letters and digits lies after an operator, which every closer look would find, too."""
    usual = _USUAL.match(text, at) if op in _SIMPLE else None
    if usual is None:
        return None
    value = usual["value"]
    if "xxx" in value or "XXX" in value or (key.endswith(value) and value == key.rsplit(".", 1)[-1]):
        return None
    return None if key.lower().endswith(_HEADERS) and not usual["scheme"] else usual.span("value")


def _open_spans(text: str, claim: Claim) -> Spans:
    """Return where a value lies that begins with a bracket which is not closed."""
    bare = _bare(text, claim.value_at)
    return _bare_span(text, claim) if bare and _DIGITS_UNQUOTED.fullmatch(bare.group()) else []


def _closing(text: str, begin: int, quote: str, depth: int) -> int:
    """Return where the quoted value ends: at a quote escaped no deeper than the opening one, or at the end."""
    at = text.find(quote, begin)
    while at >= 0:
        slashes = 0
        while slashes <= depth and at - slashes > begin and text[at - slashes - 1] == "\\":
            slashes += 1
        if slashes <= depth:
            return at - slashes
        at = text.find(quote, at + 1)
    return len(text)


def _is_field_name(inner: str) -> bool:
    return len(inner) < _LONGEST_NAME and _FIELD_NAME.fullmatch(inner) is not None


def _unquoted_spans(text: str, claim: Claim) -> Spans:
    pattern = {"xml": _XML, "query": _QUERY}.get(claim.op) or (_ESCAPED if claim.op[0] == "%" else None)
    if pattern:
        return _pattern_span(pattern, text, claim)
    if claim.op == "said":
        return _said_span(text, claim)
    block = _BLOCK.match(text, claim.value_at)
    if block:
        return [block.span("body")]
    if claim.key.lower().endswith(_HEADERS):
        return _header_span(text, claim, claim.value_at, None)
    return _bare_span(text, claim)


def _pattern_span(pattern: re.Pattern[str], text: str, claim: Claim) -> Spans:
    match = pattern.match(text, claim.value_at)
    if match is None:
        return []
    group = "body" if pattern is _ESCAPED else 0
    style = Style.QUOTED if claim.op == "xml" else Style.EQUALS
    begin, stop = match.span(group)
    judged = text[begin : min(stop, begin + JUDGED)]
    return [(begin, stop)] if reads_as_secret(judged, "", claim.verdict, style) else []


def _is_closing(text: str, claim: Claim, opening: re.Match[str]) -> bool:
    """Say whether the quote ends the string the key itself is in, as in `prompt='Password: ', x=1`."""
    keyed = text[claim.start + len(claim.key) : claim.value_at].strip() == ":"
    return keyed and text[opening.end() : opening.end() + 1] in _AFTER_CLOSING


def _header_span(text: str, claim: Claim, begin: int, end: int | None) -> Spans:
    """Return the credentials of a header; `end` is where a quoted one ends."""
    limit = len(text) if end is None else end
    if claim.key.lower().endswith(("cookie", "cookies")):
        return _whole_header(text, begin, end) if _COOKIE.match(text, begin, limit) else []
    if _WHOLE_SCHEME.match(text, begin, limit):
        return _whole_header(text, begin, end)
    scheme = _SCHEME.match(text, begin, limit)
    first = _bare(text, scheme.end() if scheme else begin, limit)
    style = Style.EQUALS if scheme else Style.COLON
    if first is None or not reads_as_secret(first.group(), _line_after(text, first.end()), Verdict.TOKEN, style):
        return []
    return [(first.start(), _end(_BARE_END, text, first.start(), limit))] if scheme else _whole_header(text, begin, end)


def _whole_header(text: str, begin: int, end: int | None) -> Spans:
    return [(begin, _end(_HEADER_END, text, begin) if end is None else end)]


def _bare_span(text: str, claim: Claim) -> Spans:
    match = _bare(text, claim.value_at)
    if match is None or claim.op in ("call", "==", "==="):
        return []
    begin, stop = match.span()
    rest = _line_after(text, stop)
    starts_line = _LINE_START.search(text, max(0, claim.start - 24), claim.start) is not None
    if starts_line and claim.verdict is Verdict.SECRET and is_passphrase(match.group() + rest):
        return [(begin, stop + len(rest.rstrip()))]
    if match.group().rstrip(",;)") == claim.key.rsplit(".", 1)[-1]:
        return []
    style = _style(text, claim, begin)
    is_word = style is Style.COLON and is_plain_api_key(claim.key, match.group())
    if not reads_as_secret(match.group(), rest, Verdict.SECRET if is_word else claim.verdict, style):
        return []
    return [(begin, _end(_BARE_END, text, begin))]


def _style(text: str, claim: Claim, begin: int) -> Style:
    if "=" not in claim.op:
        is_header = "-" in claim.key and claim.key[:1].isupper()
        return Style.EQUALS if is_header else Style.COLON
    if text[begin - 1].isspace():
        return Style.SPACED
    return Style.ENV if claim.key.isupper() and claim.op == "=" else Style.EQUALS


def _said_span(text: str, claim: Claim) -> Spans:
    """Return where a secret lies that is told in a sentence: `the password is X`, `user ann, password X`."""
    told = claim.verdict is Verdict.SECRET and _SAID.search(text, claim.start, claim.value_at)
    if told and not _SAID_SIGN.match(text, claim.value_at):
        return []
    match = (_SAID_WORD if told else _GIVEN_WORD).match(text, claim.value_at)
    if match is None or _ALGORITHM.fullmatch(match.group()):
        return []
    value = match.group()
    if not told and not _is_mixed(value) and not _is_listed(text, claim, match):
        return []
    return [match.span()] if reads_as_secret(value, "", claim.verdict, Style.COLON) else []


def _is_mixed(value: str) -> bool:
    """Whether a value is letters with digits among them, or a long number, as hardly any word is."""
    return _MIXED.fullmatch(value) is not None


def _is_listed(text: str, claim: Claim, value: re.Match[str]) -> bool:
    """Whether the key stands in a row with what else it takes to log in, and the value is no word of a sentence."""
    if claim.verdict is not Verdict.SECRET or is_about(value.group()):
        return False
    before = _LISTED_BEFORE.search(text, max(0, claim.start - _LONGEST_ITEM), claim.start)
    return before is not None or _LISTED_AFTER.match(text, value.end()) is not None


def _matching_bracket(text: str, begin: int) -> int:
    """Return where the bracket that opens at `begin` is closed by its like, or `begin` when it is not."""
    depth = 0
    for bracket in _BRACKET.finditer(text, begin, begin + _CONTAINER):
        depth += 1 if bracket.group() in _OPEN_BRACKETS else -1
        if not depth:
            return bracket.end() if text[begin] + bracket.group() in _BRACKETS else begin
    return begin


def _line_after(text: str, at: int) -> str:
    return text[at : _end(_LINE, text, at)]


def _bare(text: str, at: int, limit: int = sys.maxsize) -> re.Match[str] | None:
    """Return the start of the value at this place that has no quotes around it."""
    return _BARE.match(text, at, min(limit, at + _LONGEST_BARE))


def _end(pattern: re.Pattern[str], text: str, at: int, limit: int = sys.maxsize) -> int:
    match = pattern.match(text, at, limit)
    return match.end() if match else at
