"""Find the keys in a text that name a secret, in whatever notation, and with them their values.

Which keys count is judged in `keys`, where a value ends in `values`. Every pattern is bounded or possessive wherever a
required part follows, so that the rules are linear in the text.
"""

from __future__ import annotations

import re
from itertools import product
from typing import Final

from toolgate.kernel.text.lazy_pattern import lazy_pattern
from toolgate.kernel.text.masking.keys import MASK, SECOND_WORDS, Verdict, judge
from toolgate.kernel.text.masking.values import Claim, Spans, Values, usual_span

STEMS: Final = (
    "pass", "pwd", "secret", "token", "key", "cred", "auth", "bearer", "cookie", "jwt", "otp", "pin", "cvv", "cvc",
    "dsn", "sess", "ssn", "conn", "csrf", "xsrf", "code", "phrase", "mnemonic", "pem", "pw", "psw", "card",
    "conn str", "connection str", "contrase", "senha", "kennwort", "wachtwoord", "hasło", "hasŁo", "密码", "密碼",
    "パスワード", "비밀번호", "psk", "seed", "security", *map("".join, product(*zip("пароль", "ПАРОЛЬ", strict=True))),
)  # fmt: skip
"""Every word that may name a secret in a text holds one of these; letters of ASCII are in lower case."""
URL_STEMS: Final = tuple(mark + word for mark in "?&;#" for word in ("sig", "x-amz-sig", "x-goog-sig"))
"""And these, after their first character, in the query of a URL."""
# What may be left out is written as the last of its choices, nothing: that matches faster than a repeat.
_TAIL: Final = lazy_pattern(
    r"[\w.\-]{0,48}+(?P<tail>"
    r"(?:\\{0,7}[\"'`]|%22|(?i:&quot;)|)\]?(?:[ \t]{1,16}(?i:string)|)[ \t]{0,16}"
    r"(?P<op>=>|[?+|]{0,2}=(?![=>]|~[ \t/])|={2,3}(?=[ \t]*[\"'])|\??:=?(?![:/])|\uff1a|%3[ADad])"
    r"|\\{0,7}[\"']?,?\s{1,24}(?:\\{0,7}[\"']|)(?i:value)(?:\\{0,7}[\"']|)[ \t]{0,8}(?P<pair>[:=])"
    r"|(?P<xml>>)(?=[^<>]{1,4096}</)"
    r"|(?P<call>\\{0,7}[\"'],)(?=\s{0,8}[\"'])"
    r"|(?P<setter>\()(?=[\"'])"
    r"|(?P<said>(?:[ \t]{1,4}(?i:is|was|to|of)|):?[ \t]{1,4})"
    r"(?=[\"'`][^\s\"'`]|\S{0,40}[\d@#$%^&*_+=]|[^\s,;]{3,64}(?:[\s,;]|\Z))"
    r")"
)
_KEY_CHARS: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."
HEAD: Final = 48
"""So many characters of a key may stand before a stem, and as many behind it."""

_SETTER: Final = lazy_pattern(r"(?:set|with|[^\w])_?(?:password|passwd|pwd|passphrase)\Z", re.IGNORECASE)
_URL_KEYS: Final = frozenset(
    {
        "sig",
        "signature",
        "x-amz-signature",
        "x-amz-credential",
        "x-goog-signature",
        "x-goog-credential",
        "awsaccesskeyid",
    }
)
_BLANK: Final = lazy_pattern(r"[ \t]{1,64}")
_BLANK_LINES: Final = lazy_pattern(r"\s{1,64}")
_HIDDEN: Final = lazy_pattern(r"[ \t]{0,8}(?:(?i:bearer|basic|token)[ \t]{1,8})?(?:\*\*\*(?=\s|\Z)|([\"'`])\*\*\*\1)")
"""A value that is hidden already."""
_QUOTED_TAIL: Final = frozenset("\"'\\")


class _Verdicts(dict[str, Verdict]):
    """The verdicts on the keys of one text, each judged when it is first met."""

    def __missing__(self, key: str) -> Verdict:
        verdict = self[key] = judge(key)
        return verdict


def key_spans(text: str, places: Spans) -> Spans:
    """Return where the values lie that stand beside a key; `places` are those of the stems."""
    values = Values(text)
    spans: Spans = []
    verdicts = _Verdicts()
    cursor = last = 0
    is_hidden = _HIDDEN.match if MASK in text else None
    tail_at, least = _TAIL.match, Verdict.WEAK
    for begin, end in places:
        match = tail_at(text, end) if begin >= cursor else None
        if match is None:
            continue
        past = match.end()
        if past == last or (is_hidden and is_hidden(text, past)):
            continue
        head = text[begin - HEAD if begin > HEAD else 0 : begin]
        start = begin - len(head) + len(head.rstrip(_KEY_CHARS))
        before = text[start - 1] if start else ""
        if before == "\\" and text[start] in "nrt":
            before = text[start]
            start += 1
        key = text[start : match.start("tail")].strip("-.")
        verdict = verdicts[key] or _judge_in_text(text, start, key, before)
        if verdict < least or start < cursor:
            continue
        usual = usual_span(text, past, match["op"], key) if before != "/" else None
        if usual:
            last, cursor = past, usual[1]
            spans.append(usual)
        elif claim := _claim(text, start, key, verdict, before, match):
            last = past
            for span in values.spans(claim):
                spans.append(span)
                cursor = span[1]
    return spans


def _claim(text: str, start: int, key: str, verdict: Verdict, before: str, match: re.Match[str]) -> Claim | None:
    tail = match.start("tail")
    op = _operator(match, before, text, start, tail)
    if not op or (before == "/" and ":" in op):
        return None
    if op == "said" and verdict < Verdict.SECRET and (verdict < Verdict.TOKEN or "key" not in key.lower()):
        return None
    value_at = match.end()
    if text[value_at : value_at + 1].isspace():
        lines = text[tail : tail + 1] in _QUOTED_TAIL or op in ("call", "pair")
        blank = (_BLANK_LINES if lines else _BLANK).match(text, value_at)
        value_at = blank.end() if blank else value_at
    return Claim(verdict, key, op, start, value_at)


def _judge_in_text(text: str, start: int, key: str, before: str) -> Verdict:
    """Return the verdict on a key that names a secret only because of what stands before it."""
    if before == " " and key.lower() in SECOND_WORDS:
        previous = text[max(0, start - 24) : start].split()
        return judge(f"{previous[-1]} {key}") if previous else Verdict.CLEAN
    if before in ("?", "&", ";", "#") and key.lower() in _URL_KEYS:
        return Verdict.TOKEN
    return Verdict.CLEAN


def _operator(match: re.Match[str], before: str, text: str, start: int, tail: int) -> str:
    op = match["op"]
    if op:
        return "query" if op == "=" and before in ("?", "&") else op
    if match["pair"]:
        return "pair"
    if match["xml"]:
        return "xml" if before in ("<", ":") else ""
    if match["call"]:
        further = text[max(0, start - 2) : start - 1]
        return "call" if before in ("'", '"') and further in ("(", "[", "\\") else ""
    if match["setter"]:
        return "call" if _SETTER.search(match.string, max(0, start - 8), tail) else ""
    return "said"
