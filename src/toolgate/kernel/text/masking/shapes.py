"""Find secrets in text: known token formats, PEM blocks, URLs, and values beside a key that names a secret.

Which keys and values count is judged in `masking_keys`; the walk over values is in `masking`. Every pattern is
bounded or possessive wherever a required part follows, so that each rule is linear in the text.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from toolgate.kernel.text.lazy_pattern import lazy_pattern
from toolgate.kernel.text.masking.key_blocks import mask_key_blocks
from toolgate.kernel.text.masking.keys import (
    MASK,
    Style,
    Verdict,
    is_passphrase,
    is_placeholder,
    judge,
    reads_as_secret,
)

# A token starts at a boundary; `%3D` and `\\n` before it glue on a digit or a letter and still count as one.
_EDGED: Final = (
    ("AKIA", "[0-9A-Z]{16}(?![0-9A-Za-z])"), ("ASIA", "[0-9A-Z]{16}(?![0-9A-Za-z])"),
    ("gl", r"(?:pat|dt|rt|cbt|ptt|ft|soat|agent|oas|ffct|imt)-[\w\-]{16,}"),
    ("sk-", r"(?:ant|proj|or|svcacct|admin|lf|None)-(?=[\w\-]*[0-9A-Z])[\w\-]{16,}"),
    ("sk-", r"(?=[A-Za-z0-9_\-]{0,64}[0-9A-Z])[A-Za-z0-9]{20,}[\w\-]*"), ("AIza", r"[\w\-]{30,}"),
    ("ya29.", r"[\w\-.]{20,}"), ("1//0", r"[\w\-]{30,}"), ("npm_", "[A-Za-z0-9]{30,}"),
    ("pypi-A", r"[\w\-]{30,}"), ("hf_", "[A-Za-z0-9]{20,}"), ("SG.", r"[\w\-]{16,64}\.[\w\-]{20,}"),
    ("SK", "[0-9a-f]{32}(?![0-9A-Za-z])"), ("doo_v1_", "[a-f0-9]{32,}"), ("dop_v1_", "[a-f0-9]{32,}"),
    ("dor_v1_", "[a-f0-9]{32,}"), ("shp", "(?:at|ca|pa|ss)_[a-fA-F0-9]{24,}"),
    ("eyJ", r"[\w\-]{17,}+\.[\w\-]{4,}+(?:\.[\w\-]*+){0,3}"), ("hv", r"[sbr]\.[\w\-]{20,}"),
    ("dapi", "[a-f0-9]{32}(?:-[0-9])?"), ("lin_", "(?:api|oauth)_[A-Za-z0-9]{30,}"),
    ("secret_", "[A-Za-z0-9]{40,}"), ("ntn_", "[A-Za-z0-9]{40,}"), ("key-", "[0-9a-f]{32}(?![0-9A-Za-z])"),
    ("EAAA", r"[\w\-]{56,}"), ("sbp_", "[a-f0-9]{32,}"), ("pul-", "[0-9a-f]{40}"),
    ("r8_", "[A-Za-z0-9]{30,}"), ("gsk_", "[A-Za-z0-9]{30,}"), ("xai-", "[A-Za-z0-9]{40,}"),
    ("pplx-", "[A-Za-z0-9]{32,}"), ("AT", r"(?:ATT3|CTT3|BB)[\w\-=]{24,}"), ("AKCp", "[A-Za-z0-9]{20,}"),
    ("oy2", "[a-z0-9]{43}(?![a-z0-9])"), ("fm2_", r"[\w+/=]{40,}"),
)  # fmt: skip
_ANYWHERE: Final = (
    ("gh", "gh[pousr]_[A-Za-z0-9]{20,}"), ("github_pat_", "github_pat_[A-Za-z0-9_]{20,}"),
    ("xox", r"xox[abceoprsd](?:\.xox[bp])?-[\w\-]{15,}"), ("xapp-", r"xapp-[0-9]-[\w\-]{12,}"),
    ("hooks.slack.com/", r"(?<=hooks\.slack\.com/)(?:services|workflows|triggers)/[\w/+\-]{8,}"),
    ("/api/webhooks/", r"(?<=/api/webhooks/)[0-9]{5,}/[\w\-]{20,}"),
    ("webhook.office.com/", r"(?<=webhook\.office\.com/)[\w\-@/]{20,}"),
    ("k_live_", "(?:sk|rk)_live_[A-Za-z0-9]{12,}"), ("k_test_", "(?:sk|rk)_test_[A-Za-z0-9]{12,}"),
    ("whsec_", "whsec_[A-Za-z0-9+/=]{16,}"), ("GOCSPX-", r"GOCSPX-[\w\-]{20,}"),
    (":A", r"(?:(?<![0-9A-Za-z])|(?<=bot))[0-9]{8,10}:A[\w\-]{32,40}(?![\w\-])"),
    (".", r"[MNO](?<![\w\-][MNO])[\w\-]{22,27}\.[\w\-]{6}\.(?=[\w\-]*[0-9])(?=[\w\-]*[A-Z])[\w\-]{27,45}(?![\w\-.])"),
    ("AGE-SECRET-KEY-1", "AGE-SECRET-KEY-1[A-Z0-9]{20,}"),
    ("-us", "(?<![0-9A-Za-z])[0-9a-f]{32}-us[0-9]{1,2}(?![0-9A-Za-z])"),
    ("sq0", r"sq0(?:csp|atp)-[\w\-]{20,}"), ("rubygems_", "rubygems_[a-f0-9]{40,}"),
    ("dckr_", r"dckr_(?:pat|oat)_[\w\-]{20,}"), ("glsa_", "glsa_[A-Za-z0-9]{20,}[_a-f0-9]*"),
    ("glc_", "glc_[A-Za-z0-9+/=]{32,}"), ("NRAK-", "NRAK-[A-Z0-9]{20,}"),
    ("PMAK-", "PMAK-[a-f0-9]{20,}-[a-f0-9]{20,}"), ("figd_", r"figd_[\w\-]{20,}"),
    (".atlasv1.", r"(?<=[A-Za-z0-9]{14})\.atlasv1\.[\w\-]{40,}"),
    ("dt0", r"dt0[a-z][0-9]{2}\.[A-Z0-9]{20,}\.[A-Z0-9]{40,}"), ("sntry", r"sntry[su]_[\w\-+/=]{32,}"),
    ("tskey-", r"tskey-[a-z]+-[\w\-]{16,}"), ("pscale_", r"pscale_(?:tkn|pw|oauth)_[\w\-.]{24,}"),
    ("CFPAT-", r"CFPAT-[\w\-]{32,}"),
)  # fmt: skip


def _edged(literal: str, rest: str) -> re.Pattern[str]:
    # The literal comes first, so that the search can skip to it.
    word = re.escape(literal)
    edge = rf"(?:(?<![A-Za-z0-9_\-]{word})|(?<=%[0-9A-Fa-f]{{2}}{word})|(?<=\\[nrt]{word}))"
    return lazy_pattern(word + edge + rest)


_SHAPES: Final = (
    *((literal, _edged(literal, rest)) for literal, rest in _EDGED),
    *((trigger, lazy_pattern(pattern)) for trigger, pattern in _ANYWHERE),
)
_TRIGGERS: Final = tuple(dict.fromkeys(("Private-Lines: ", *(trigger for trigger, _ in _SHAPES))))


def triggers() -> tuple[str, ...]:
    """Return what every well-known token holds one of, near a long run of token characters."""
    return _TRIGGERS


# Every shape holds a run of this many letters, digits, `_` and `-`.
_RUN: Final = b"a" * 20
_RUNS: Final = bytes(97 if code < 128 and (chr(code).isalnum() or chr(code) in "_-") else 32 for code in range(256))
_BEFORE_RUN: Final = 64

_PPK: Final = lazy_pattern(r"(Private-Lines: [0-9]{1,4}\s{1,2})((?:[A-Za-z0-9+/=]{1,76}\s{1,2})+)")


def mask_shapes(text: str) -> str:
    """Replace every well-known token and private key block in the text."""
    if "PRIVATE KEY" in text:
        text = mask_key_blocks(text)
    near = near_runs(text)
    if not near:
        return text
    if "Private-Lines: " in near:
        text = _PPK.sub(rf"\1{MASK}", text)
    for trigger, pattern in _SHAPES:
        if trigger in near:
            text = pattern.sub(MASK, text)
    return text


def near_runs(text: str) -> str:
    """Return the parts of the text around long runs of token characters, where alone a token can be."""
    raw = text.encode("ascii", "replace")
    runs = raw.translate(_RUNS)
    near = []
    at = runs.find(_RUN)
    while at >= 0:
        stop = runs.find(b" ", at)
        stop = len(runs) if stop < 0 else stop
        near.append(raw[max(0, at - _BEFORE_RUN) : stop])
        at = runs.find(_RUN, stop)
    return b" ".join(near).decode()


# Read backwards, a key is the word after an operator: the search can then skip from operator to operator.
_BACKWARDS: Final = lazy_pattern(
    r"[=:>,](?:(?<!,)|(?=[\"']))[ \t=?+|:]{0,9}+[\"'`\]\\;]{0,9}+([^\s\"'`\\=:,;(){}\[\]<>&?/]{2,48}(?: [a-z]{2,12})?)"
)
_PAIR_BACKWARDS: Final = lazy_pattern(r"eulav[\"'\\]{0,8}[\s,]{1,24}[\"'\\]{0,8}([\w.\-]{2,48})")
# These may name a secret, or hold one, without an operator.
_OUTRIGHT: Final = ("pass", "pwd", "secret", "bearer ", "basic ", "identified")
STEMS: Final = (
    "pass", "pwd", "secret", "token", "key", "cred", "auth", "bearer", "cookie", "jwt", "otp", "pin", "cvv", "cvc",
    "dsn", "sess", "sig", "ssn", "conn", "csrf", "xsrf", "code", "phrase", "mnemonic", "pem", "pw", "psw", "card",
    "string", "contrase", "senha", "kennwort", "wachtwoord", "hasło", "пароль", "密码", "密碼", "パスワード",
    "비밀번호",
)  # fmt: skip
_ASCII_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_TAIL: Final = (
    r"[\w.\-]{0,48}+(?P<tail>"
    r"(?:\\{0,7}[\"'`]|%22|&quot;)?\]?[ \t]{0,16}"
    r"(?P<op>=>|[?+|]{0,2}=(?![=>]|~[ \t/])|={2,3}(?=[ \t]*[\"'])|\??:=?(?![:/])|\uff1a|%3[ADad])"
    r"|\\{0,7}[\"']?,?\s{1,24}(?:\\{0,7}[\"'])?[Vv]alue(?:\\{0,7}[\"'])?[ \t]{0,8}(?P<pair>[:=])"
    r"|(?P<xml>>)(?=[^<>]{1,4096}</)"
    r"|(?P<call>\\{0,7}[\"'],)(?=\s{0,8}[\"'])"
    r"|(?P<setter>\()(?=[\"'])"
    r"|(?P<said>(?:[ \t]{1,4}(?:is|was|to|of))?:?[ \t]{1,4})(?=[\"'`][^\s\"'`]|\S{0,40}[\d@#$%^&*_+=])"
    r")"
)
_FINDERS: Final = tuple((stem, lazy_pattern(stem + _TAIL)) for stem in STEMS)
_KEY_CHARS: Final = "abcdefghijklmnopqrstuvwxyz0123456789_-."
_HEAD: Final = 48

_BLANK: Final = lazy_pattern(r"[ \t]{0,64}")
_BLANK_LINES: Final = lazy_pattern(r"\s{0,64}")
_OPENING: Final = lazy_pattern(r"(?:[fFrRbBuUL@$]{1,2}(?=[\"'`]))?(?P<escape>\\{0,7})(?P<quote>\"\"\"|'''|[\"'`])")
_BLOCK: Final = lazy_pattern(r"[|>][\-+0-9]{0,2}[ \t]*\n(?P<indent>[ \t]+)(?P<body>[^\n]*(?:\n(?P=indent)[^\n]*)*)")
_LITERAL: Final = lazy_pattern(
    r"(?P<b>\\{0,7})(?P<q>[\"'])(?P<body>(?:(?!(?P=b)(?P=q))[^\n]){0,1000})(?P=b)(?P=q)(?P<key>\s{0,4}(?::|=>))?"
)
_SETTER: Final = lazy_pattern(r"(?:set|with|[^\w])_?(?:password|passwd|pwd|passphrase)\Z")
_SCHEMA: Final = lazy_pattern(r"[\"']type\\*[\"']\s?:\s?\\*[\"'](?:string|integer|number|object|array|boolean)\\*[\"']")
_BRACKET: Final = lazy_pattern(r"[\[\](){}]")
_QUERY: Final = lazy_pattern(r"[^\s&#\"'<>\\`]+")
_ESCAPED: Final = lazy_pattern(r"(?:%22)?(?P<body>(?:[^\s&%\"']|%(?!26|22|7[dD]|2[cC]))+)")
_XML: Final = lazy_pattern(r"[^<]+")
_BARE_CHAR: Final = (
    r"(?:\$?\{\{?[^{}\n]{0,80}\}\}?|\$\([^()\n]{0,80}\)|<[^<>\n]{1,60}>"
    r"|[^\s\"'`<>,;&\\)\]}|]"
    r"|[,;&|)\]}]*[,;&|](?=[^\s\"'`,;&|)\]}])(?![A-Za-z_][\w.\-%]{1,40}(?:=|:\s))|[)\]}]+(?=[^\s\"'`,;&|)\]}:])"
    r"|[\"'`](?=\w)"
    r"|<(?![/a-zA-Z!\s])|>(?=\S)"
    r"|\\(?![nrt\"'\\\s]))"
)
# How a value reads is judged by its start; only one that is masked is followed to its end.
_BARE: Final = lazy_pattern(_BARE_CHAR + "{1,256}")
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
# A text with thousands of secrets is shown up to there only: its cost stays bounded.
_MAX_PIECES: Final = 6000
_SAID: Final = lazy_pattern(r"(?:is|was|to):?[ \t]{1,4}\Z")
_ALGORITHM: Final = lazy_pattern(
    r"(?:(?:sha|md|base|utf|aes|rsa|v|oauth|https?|pbkdf|argon|b?crypt|scrypt|ed|es|hs|rs|py|s)[-_]?\d{1,4}|\d{1,4})"
    r"(?:[-_][A-Za-z]+)*[.,;:!?]*",
    re.IGNORECASE,
)
_SAID_WORD: Final = lazy_pattern(r"(?=\S{0,40}[A-Za-z])[^\s\"'`<>]{6,}")

Spans = list[tuple[int, int]]


class _Claim(NamedTuple):
    """A key that names a secret, and where its value starts."""

    verdict: Verdict
    key: str
    op: str
    start: int
    value_at: int


def lower(text: str) -> str:
    """Return the text in lower case with every character at its place."""
    low = text.lower()
    return low if len(low) == len(text) else text.translate(_ASCII_LOWER)


def find_names(text: str) -> str:
    """Return, cheaply, all words of the text that could be keys naming a secret; empty when there are none."""
    low = lower(text)
    if not low.isascii() or ("%" in low and "%3" in low) or ("\\" in low and "\\u00" in low):
        return low
    backwards = low[::-1]
    found = {*_BACKWARDS.findall(backwards), *[word[::-1] for word in _OUTRIGHT if word in low]}
    if "eulav" in found:
        found.update(_PAIR_BACKWARDS.findall(backwards))
    names = " ".join(found)[::-1]
    return names if any(map(names.__contains__, STEMS)) or "basic " in names or "identified" in names else ""


def mask_assignments(text: str, names: str) -> str:
    """Replace each value that stands beside a key naming a secret, in whatever notation.

    `names` is what `find_names` found.
    """
    low = lower(text)
    pieces: list[str] = []
    # Surroundings in which nothing was found: a text that repeats itself is judged once.
    quiet: set[tuple[int, str]] = set()
    cursor = container_from = 0
    for match in _find_keys(low, names):
        seen = (match.end() - match.start(), text[max(0, match.start() - _HEAD - 2) : match.end() + _REACH])
        claim = None if match.start() < cursor or seen in quiet else _claim(text, low, match)
        if claim is None or claim.start < cursor:
            continue
        may_scan = claim.value_at >= container_from
        spans = _value_spans(text, claim, may_scan)
        first = text[claim.value_at : claim.value_at + 1]
        if first in _OPEN_BRACKETS and may_scan:
            # An unclosed bracket is scanned once: later keys inside the scanned part do not scan it again.
            container_from = claim.value_at + _CONTAINER
        elif not spans and first not in _QUOTES and len(quiet) < _MAX_QUIET:
            quiet.add(seen)
        for begin, stop in spans:
            pieces += (text[cursor:begin], MASK)
            cursor = stop
        if len(pieces) > _MAX_PIECES:
            return "".join(pieces)
    return "".join(pieces) + text[cursor:] if pieces else text


def _find_keys(low: str, names: str) -> Iterator[re.Match[str]]:
    """Yield, in order, the ends of all words that may name a secret; each end once."""
    finders = [finder.finditer(low) for stem, finder in _FINDERS if stem in names]
    last = -1
    for match in heapq.merge(*finders, key=re.Match.end):
        if match.end() != last:
            last = match.end()
            yield match


def _claim(text: str, low: str, match: re.Match[str]) -> _Claim | None:
    start = match.start()
    head = low[max(0, start - _HEAD) : start]
    start -= len(head) - len(head.rstrip(_KEY_CHARS))
    if text[start - 1 : start] == "\\" and text[start] in "nrt":
        start += 1
    key = text[start : match.start("tail")].strip("-.")
    before = text[start - 1] if start else ""
    op = _operator(match, before, text[max(0, start - 2) : start - 1])
    if not op or (before == "/" and ":" in op):
        return None
    verdict = _judge_in_text(text, start, key)
    if verdict < (Verdict.SECRET if op == "said" else Verdict.WEAK):
        return None
    multiline = match["tail"][:1] in "\"'\\" or op in ("call", "pair")
    value_at = _end(_BLANK_LINES if multiline else _BLANK, text, match.end())
    return _Claim(verdict, key, op, start, value_at)


def _judge_in_text(text: str, start: int, key: str) -> Verdict:
    verdict = judge(key)
    before = text[start - 1] if start else ""
    if not verdict and before == " ":
        previous = text[max(0, start - 24) : start].split()
        verdict = judge(f"{previous[-1]} {key}") if previous else verdict
    if not verdict and before in ("?", "&", ";", "#") and key.lower() in _URL_KEYS:
        verdict = Verdict.TOKEN
    return verdict


def _operator(match: re.Match[str], before: str, further: str) -> str:
    if match["op"]:
        return "query" if match["op"] == "=" and before in ("?", "&") else match["op"]
    if match["pair"]:
        return "pair"
    if match["xml"]:
        return "xml" if before in ("<", ":") else ""
    if match["call"]:
        return "call" if before in ("'", '"') and further in ("(", "[", "\\") else ""
    if match["setter"]:
        return "call" if _SETTER.search(match.string, match.start() - 8, match.start("tail")) else ""
    return "said"


def _value_spans(text: str, claim: _Claim, may_scan: bool) -> Spans:
    if text[claim.value_at : claim.value_at + 1] in _OPEN_BRACKETS and claim.op not in ("said", "xml", "query"):
        return _container_spans(text, claim, may_scan)
    at = claim.value_at
    opening = _OPENING.match(text, at)
    if opening and claim.op != "xml" and not _is_closing(text, claim, opening):
        return _quoted_span(text, claim, opening)
    pattern = {"xml": _XML, "query": _QUERY}.get(claim.op) or (_ESCAPED if claim.op[0] == "%" else None)
    if pattern:
        return _pattern_span(pattern, text, claim)
    if claim.op == "said":
        return _said_span(text, claim)
    block = _BLOCK.match(text, at)
    if block:
        return [block.span("body")]
    if claim.key.lower().endswith(_HEADERS):
        return _header_span(text, claim, at, None)
    return _bare_span(text, claim)


def _pattern_span(pattern: re.Pattern[str], text: str, claim: _Claim) -> Spans:
    match = pattern.match(text, claim.value_at)
    if match is None:
        return []
    group = "body" if pattern is _ESCAPED else 0
    style = Style.QUOTED if claim.op == "xml" else Style.EQUALS
    return [match.span(group)] if reads_as_secret(match[group], "", claim.verdict, style) else []


def _quoted_span(text: str, claim: _Claim, opening: re.Match[str]) -> Spans:
    begin, quote, depth = opening.end(), opening["quote"], len(opening["escape"])
    stop = _closing(text, begin, quote, depth)
    if len(quote) == 1 and "\n" in text[begin:stop] and ("=" not in claim.op or stop - begin > _LONGEST_LINES):
        stop = text.index("\n", begin)
    inner = text[begin:stop]
    if claim.op == "call" and _FIELD_NAME.fullmatch(inner):
        return []
    if claim.key.lower().endswith(_HEADERS):
        return _header_span(text, claim, begin, stop)
    if claim.op in ("==", "===") and claim.verdict < Verdict.SECRET and _FIELD_NAME.fullmatch(inner):
        return []
    return [(begin, stop)] if reads_as_secret(inner, "", claim.verdict, Style.QUOTED) else []


def _is_closing(text: str, claim: _Claim, opening: re.Match[str]) -> bool:
    """Say whether the quote ends the string the key itself is in, as in `prompt='Password: ', x=1`."""
    keyed = text[claim.start + len(claim.key) : claim.value_at].strip() == ":"
    return keyed and text[opening.end() : opening.end() + 1] in _AFTER_CLOSING


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


def _header_span(text: str, claim: _Claim, begin: int, end: int | None) -> Spans:
    """Return the credentials of a header; `end` is where a quoted one ends."""
    limit = len(text) if end is None else end
    if claim.key.lower().endswith(("cookie", "cookies")):
        return _whole_header(text, begin, end) if _COOKIE.match(text, begin, limit) else []
    if _WHOLE_SCHEME.match(text, begin, limit):
        return _whole_header(text, begin, end)
    scheme = _SCHEME.match(text, begin, limit)
    first = _BARE.match(text, scheme.end() if scheme else begin, limit)
    style = Style.EQUALS if scheme else Style.COLON
    if first is None or not reads_as_secret(first.group(), _line_after(text, first.end()), Verdict.TOKEN, style):
        return []
    return [(first.start(), _end(_BARE_END, text, first.start()))] if scheme else _whole_header(text, begin, end)


def _whole_header(text: str, begin: int, end: int | None) -> Spans:
    stop = _end(_HEADER_END, text, begin) if end is None else end
    return [] if is_placeholder(text[begin : min(stop, begin + _HEAD)]) else [(begin, stop)]


def _bare_span(text: str, claim: _Claim) -> Spans:
    match = _BARE.match(text, claim.value_at)
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
    if not reads_as_secret(match.group(), rest, claim.verdict, style):
        return []
    return [(begin, _end(_BARE_END, text, begin))]


def _style(text: str, claim: _Claim, begin: int) -> Style:
    if "=" not in claim.op:
        is_header = "-" in claim.key and claim.key[:1].isupper()
        return Style.EQUALS if is_header else Style.COLON
    if text[begin - 1].isspace():
        return Style.SPACED
    return Style.ENV if claim.key.isupper() and claim.op == "=" else Style.EQUALS


def _said_span(text: str, claim: _Claim) -> Spans:
    match = _SAID_WORD.match(text, claim.value_at)
    if match is None or not _SAID.search(text, claim.start, claim.value_at) or _ALGORITHM.fullmatch(match.group()):
        return []
    return [match.span()] if reads_as_secret(match.group(), "", claim.verdict, Style.COLON) else []


def _container_spans(text: str, claim: _Claim, may_scan: bool) -> Spans:
    stop = _matching_bracket(text, claim.value_at) if may_scan else claim.value_at
    if stop == claim.value_at:
        bare = _BARE.match(text, stop)
        return _bare_span(text, claim) if bare and _DIGITS_UNQUOTED.fullmatch(bare.group()) else []
    if _SCHEMA.search(text, claim.value_at, stop):
        return []
    return [
        literal.span("body")
        for literal in _LITERAL.finditer(text, claim.value_at, stop)
        if not literal["key"] and reads_as_secret(literal["body"], "", claim.verdict, Style.QUOTED)
    ]


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


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at
