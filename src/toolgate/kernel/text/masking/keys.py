"""Judge what is a secret: by the words of the key beside it, or by how the value reads.

A key is split into words (`dbPassword`, `DB_PASSWORD` and `db.password` are the same two words). It names a
secret when one of its words, or a pair of neighbours, does, unless a later word says that the value merely
describes the secret (`password_policy`, `token_count`) or an earlier one changes its meaning
(`next_page_token`, `eos_token`). Finding keys and values in text belongs to `masking_shapes`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from toolgate.kernel.text.lazy_pattern import lazy_pattern

MASK: Final = "***"

Span = tuple[int, int]
"""Where something lies in a text: its start, and where it is over."""


class Verdict(IntEnum):
    """How strongly a key names a secret; `CLEAN` is the only false one."""

    CLEAN = 0
    VALUE = 1  # the value half of a name/value pair: its sibling decides
    WEAK = 2  # `auth`, `cookie`, `pass`, `pin`: small numbers and, in prose, plain words are not secrets
    TOKEN = 3  # machine-made secrets: in prose, a plain word after it is no secret
    SECRET = 4  # human-made secrets: a plain word may well be one


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


PAIR_NAMES: Final = _set(
    "name key field header variable param parameter label option k n env parameterkey parametername"
)
_PAIR_VALUES: Final = _set("value val values v parametervalue")

_SECRET_WORDS: Final = _set(
    "password passwords passwd passwds passphrase passphrases pwd pwds pw psw pswd passwrd passcode passcodes secret "
    "secrets credential credentials cred creds mnemonic cvv cvc ssn"
)
_TOKEN_WORDS: Final = _set(
    "token jwt jwts otp totp bearer csrf xsrf dsn pem apikey apikeys connstr sessionid phpsessid jsessionid sessid "
    "aspsessionid psk passwort kennwort contraseña contrasena senha wachtwoord hasło пароль 密码 密碼 パスワード "
    "비밀번호"
)
_WEAK_WORDS: Final = _set("auth auths authorization cookie cookies")
# Words written without a boundary: `PGPASSWORD`, `authtoken`, `secretkey`.
_COMPOUND: Final = lazy_pattern(
    r"passw(?:or)?d|passphrase|apikey|credential|(?:secret|private|access|signing|encryption|auth|account)keys?$"
    r"|(?:auth|access|refresh|id|session|csrf|middleware|api|bot|user|bearer|xsrf|security|sas)token$|clientsecret"
    r"|^(?:db|pg|my|user|root|admin|mysql|smtp|ftp|redis|mail|login|ssh|sudo|bind|proxy)pass$|secret$"
)
_MIN_COMPOUND: Final = 6  # the shortest are `apikey`, `dbpass` and `secret`
_NOT_COMPOUND: Final = _set("passwordless tokenless credentialless credentialed credentialing nonsecret")
_PLURAL_TOKEN_OWNERS: Final = _set(
    "access refresh auth api bearer session id device csrf personal bot jwt security secret oauth deploy push"
)
_KEY_OWNERS: Final = _set(
    "api access private signing sign encryption encrypt decryption secret ssh master account shared service license "
    "auth app application hmac session subscription recovery activation admin root wrapping rsa dsa ecdsa aes jwt "
    "crypto webhook deploy consumer bearer openai anthropic stripe github gitlab google aws azure gemini sendgrid "
    "mailgun twilio datadog cohere mistral groq integration ssl tls gpg pgp wallet"
)
_CODE_OWNERS: Final = _set(
    "mfa otp totp verification security backup recovery pin device access sms factor 2fa fa reset login auth "
    "authorization confirmation"
)
_PASS_OWNERS: Final = _set(
    "db database user admin root mysql pg postgres postgresql smtp imap ftp sftp ssh redis mail email login proxy "
    "http https my auth ldap sudo wifi host service account bind keystore truststore cert key mongo rabbitmq mq "
    "client server basic api app registry"
)
_PIN_OWNERS: Final = _set("user card atm account security login device sim bank debit credit my")
_PAIRS: Final = frozenset(
    {
        ("connection", "string"), ("conn", "string"), ("conn", "str"), ("connection", "str"), ("seed", "phrase"),
        ("recovery", "phrase"), ("pass", "phrase"), ("social", "security"), ("card", "number"), ("pass", "word"),
        ("credit", "card"), ("private", "seed"), ("de", "passe"), ("wallet", "seed"),
    }
)  # fmt: skip

SECOND_WORDS: Final = frozenset({second for _, second in _PAIRS} | set("key keys code codes tokens pass pin".split()))
"""Words that name a secret after certain others."""

# After the secret word, these say the value is about the secret, not the secret.
_ABOUT: Final = _set(
    "count counts limit limits type types length len size sizes policy policies required requirement requirements "
    "enabled disabled name names id ids url urls uri uris endpoint endpoints path paths file files filename dir "
    "directory expiry expires expire expiration expired exp ttl age at method methods mode modes provider providers "
    "scheme schemes status state strategy version versions algorithm algorithms alg min max minimum maximum rotation "
    "manager managers store stores field fields label placeholder prompt column columns index kind format issuer "
    "audience scope scopes valid validity strength score used usage uses budget remaining cost price rate per window "
    "ratio parallelism stdin env envs var ref refs reference arn level error errors failed failure failures attempts "
    "retries timeout seconds ms minutes hours days date time timestamp updated changed created reset service "
    "services server servers host port domain domains callback redirect page input inputs visible present exists "
    "generator validator validation regex pattern chars characters bits bytes complexity template templates module "
    "class backend backends middleware plugin handler handlers function group groups role roles consent banner "
    "parser mechanism flow flows realm guard layer event events log logs username helper chain management scanning "
    "scan scanner detection detector source rules rule checker strategies encoder hasher hashers sharing protection "
    "description summary title estimate estimates total totals vault engine operator controller annotations labels "
    "metadata budgets cap caps quota quotas speed throughput latency lifetime duration ttft rotate rotated prefix "
    "suffix probs logprobs logprob bias position positions offset offsets samesite secure httponly lax maxage fd "
    "encryption hashing formatter lexer filter stream iterator constructor normalize func compound terminator "
    "classes exception warning view views serializer widget dialog button screen component hook adapter interface "
    "protocol repository bean converter processor mgr end start variants idx kinds stack buffer queue sock socket "
    "model models matrix decision decisions result results outcome symbol supply balance decimals standard match "
    "matches mismatch jar last"
)
_AUTH_ABOUT: Final = _set("sock user users client clients roles check checks needed failed ok success")
# Before `token`, these make it a cursor or a unit of text.
_TOKEN_OTHER: Final = _set(
    "next page continuation pagination cursor sync resume eos bos pad unk mask sep cls stop special max min num "
    "total per first start end prompt completion input output cached reasoning added image text avg mean nft erc20 "
    "syntax lexer parser design delimiter previous prev skip"
)
_CLAIMS: Final = _set("has is needs need requires require forgot num max min count total no skip without n allow")
# Words before `secret` that make it the name of one.
_SECRET_NAMED: Final = _set("existing pull")

_WORD: Final = lazy_pattern(r"[A-Z]+(?![^\W\dA-Z_])|[A-Z]?[^\W\dA-Z_]+|[0-9]+")
_OAUTH: Final = lazy_pattern(r"[oO]Auth")
_FILE: Final = lazy_pattern(
    r"^/(?!/)|^\.{0,2}/(?!/)|\.(?:py|pyi|js|mjs|ts|tsx|jsx|json|ya?ml|md|rst|txt|go|rs|java|kt|html?|css|scss|sh|"
    r"toml|lock|cfg|ini|conf|log|csv|rb|php|c|h|cc|cpp|cs|sql|xml|svg|png|vue|swift|ex|tf|proto|d\.ts)$"
)
# In a program, `token.kind` belongs to a parser.
_ATTRIBUTE: Final = lazy_pattern(r"token\.(?!value|secret|key|raw|access|refresh|auth|id)[a-z_]+")
_MAX_CACHED: Final = 4096
MAX_KEY: Final = 128

_cache: dict[str, Verdict] = {}


def words_of(key: str) -> list[str]:
    """Return the lower-case words of a key."""
    if key.islower() and key.isascii() and key.isalpha():
        return [key]
    return [word.lower() for word in _WORD.findall(_OAUTH.sub(" oauth", key) if "Auth" in key else key)]


def judge(key: object) -> Verdict:
    """Return the verdict on a key; anything but a string is clean. Verdicts on short keys are remembered."""
    if not isinstance(key, str):
        return Verdict.CLEAN
    verdict = _cache.get(key)
    if verdict is None:
        verdict = _judge(key)
        if len(_cache) >= _MAX_CACHED:
            _cache.clear()
        if len(key) <= MAX_KEY:
            _cache[key] = verdict
    return verdict


def _judge(key: str) -> Verdict:
    if key.lower() in _PAIR_VALUES:
        return Verdict.VALUE
    # An identifier has no space, slash or dot; most keys are one, and need no pattern.
    if not key.isidentifier() and (key.count(" ") > 3 or _FILE.search(key) or _ATTRIBUTE.fullmatch(key)):
        return Verdict.CLEAN
    words = words_of(key)
    if key in ("PWD", "OLDPWD"):
        return Verdict.WEAK
    if key.lower().endswith("secret_id"):
        return Verdict.TOKEN
    for index in range(len(words) - 1, -1, -1):
        verdict = _judge_word(words, index)
        if verdict:
            return Verdict.CLEAN if _is_about(words, index) else verdict
    return Verdict.CLEAN


def _judge_word(words: list[str], index: int) -> Verdict:
    word, before = words[index], words[index - 1] if index else ""
    if word in _SECRET_WORDS:
        return Verdict.SECRET
    if word in _TOKEN_WORDS:
        return Verdict.TOKEN
    if word in _WEAK_WORDS or _is_short_word(words, index):
        return Verdict.WEAK
    if _is_owned(before, word):
        return Verdict.TOKEN
    if len(word) >= _MIN_COMPOUND and _COMPOUND.search(word) and word not in _NOT_COMPOUND:
        return Verdict.SECRET
    return Verdict.CLEAN


def _is_owned(before: str, word: str) -> bool:
    if word in ("key", "keys"):
        return before in _KEY_OWNERS
    if word in ("code", "codes"):
        return before in _CODE_OWNERS
    if word == "tokens":
        return before in _PLURAL_TOKEN_OWNERS
    return (before, word) in _PAIRS


def _is_short_word(words: list[str], index: int) -> bool:
    word = words[index]
    if word == "pass":
        return index == len(words) - 1 and (not index or words[index - 1] in _PASS_OWNERS)
    if word == "pin":
        return len(words) == 1 or (bool(index) and words[index - 1] in _PIN_OWNERS)
    return False


def _is_about(words: list[str], index: int) -> bool:
    word, after = words[index], words[index + 1 :]
    if word in ("secret", "secrets") and index and words[index - 1] in _SECRET_NAMED:
        return True
    if not _ABOUT.isdisjoint(after) or (index and words[0] in _CLAIMS):
        return True
    if word == "token":
        return not _TOKEN_OTHER.isdisjoint(words[:index])
    return word == "auth" and not _AUTH_ABOUT.isdisjoint(after)


class Style(IntEnum):
    """How a value stands beside its key in text; later styles read more and more like prose."""

    ENV = 0
    QUOTED = 1
    EQUALS = 2
    SPACED = 3
    COLON = 4


_PLACEHOLDER: Final = lazy_pattern(
    r"\$\{\{?[^{}]{0,200}\}\}?|\{\{[^{}]{0,200}\}\}|\{(?:[A-Za-z_.]{1,60}(?:[\[(][\w'\".\-]{0,40}[\])])?(?:!\w)?(?::\w{0,9})?|\d?)\}|%\(\w{1,64}\)[sdr]"
    r"|\$\(\(?[^()]{0,200}\)?\)"
    r"|<[^<>\n]{1,80}>|%[sdrv]|\$[A-Z_][A-Z0-9_]*\b|%[A-Z_][A-Z0-9_]*%|(?i:\[(?:redacted|hidden|masked|filtered|secret)\])"
    r"|\*{3,}|•+|(?<![A-Za-z])(?:x{3,}|X{3,})(?![A-Za-z])|\.{3}|…"
)


def _is_bare_word(value: str) -> bool:
    """Whether a value is letters and digits alone, none of them standing for others: most secrets are."""
    return value.isalnum() and "xxx" not in value and "XXX" not in value


def is_placeholder(value: str) -> bool:
    """Say whether a value stands for a secret without being one: `${TOKEN}`, `<password>`, `***`, `%s`."""
    if _is_bare_word(value):
        return False
    rest, found = _PLACEHOLDER.subn("", value)
    return bool(found) and not any(map(str.isalnum, rest))


_NOTHING: Final = _set(
    "none null nil undefined true false yes no on off required optional missing empty unset n/a na todo tbd redacted"
)
_STATES: Final = _set(
    "invalid valid expired incorrect wrong unknown ok okay success succeeded failed failure error denied granted "
    "accepted rejected refreshed rotated revoked hidden masked filtered encrypted hashed plaintext pending active "
    "inactive unauthorized forbidden enabled disabled default changed updated created deleted blocked verified "
    "unverified confirmed unconfirmed weak strong good bad correct mismatch match matched present absent found set "
    "sent received used unused reused empty blank always never prompt ask auto manual internal external include omit "
    "same-origin inherit basic bearer digest oauth oauth2 jwt apikey api-key api_key ntlm kerberos saml ldap sso "
    "mtls iam token password anonymous guest local http https plain cookie session header query str string strings "
    "int integer number bool boolean bytes byte text object any char varchar float type array list dict map tuple "
    "void nullable secret secretstr self this await new const let var return function lambda if not and or else "
    "async import from class def !vault !secret !ref !sub !env !getatt !importvalue public private protected static "
    "readonly final typeof instanceof in of for while try yield raise throw"
)
_PROSE: Final = _set(
    "must should shall can cannot may might will would is are was were be been has have had the this that these "
    "those your you my our their its it we they please visit see use uses using click enter type choose pick create "
    "reset change update set add make makes ensure check verify confirm provide need needs not no never always at "
    "least in on of for from to with without by as and or but if when then than how what why where which who contact "
    "ask go try read write keep store stored send get got find forgot remember only just also too could did do does "
    "don't doesn't can't isn't failed failing invalid expired missing required optional incorrect wrong fix fixed "
    "handle handles handling support supports improve refactor remove removes rename rotate refresh allow allows "
    "deny avoid prevent returns return expected unexpected between minimum maximum max min same one two both each "
    "any all some new old more most less there here up out off after before until while during i he she im i'm a an"
)
_REFERENCE_WORDS: Final = (
    _set(
        "new old user db current input next raw plain hashed encrypted client access refresh api auth id admin root "
        "default key str string value type config options params data the get set read load info provider manager "
        "field header headers service store error handler response request base abstract custom session bot resolver "
        "factory builder model schema entity dto context state props pass tokens"
    )
    | _SECRET_WORDS
    | _TOKEN_WORDS
    | _WEAK_WORDS
)
_ROOTS: Final = _set(
    "self this os sys process settings config conf args arg env environ ctx context request req res response options "
    "opts cfg var vars secrets data local module vault params props state user session app app_settings client "
    "kwargs values values.yaml item row obj import credentials creds event body form cls parsed result resp github "
    "inputs steps matrix runner http models types typing pydantic std schema fields db account"
)
_PLAIN: Final = lazy_pattern(r"[^\W\d_]['\u2019]?[^\W\d_A-Z]*(?:['\u2019\-][^\W\d_]+)*")
_VERSION: Final = lazy_pattern(
    r"#[0-9a-fA-F]{3,8}|#[a-z]+(?:-[a-z]+)+|(?:workspace:)?[\^~><=v]{0,2}\d{1,4}\.(?:\d{1,4}|x|\*)(?:\.(?:\d{1,6}|x|\*))?(?:[-+.][a-z]+[.\-]?\d*)?"
    r"|(?:~|\.{1,2})?/(?:home|etc|var|run|usr|opt|root|secrets|mnt|tmp|Users|app|srv|work|workspace|vault)/[\w./\-]+"
)
_CALL: Final = lazy_pattern(
    r"[!&*]*(?:[A-Za-z_.$:>?\-]|(?:sha|md|b|base|aes|utf|v|pbkdf)\d{1,3})*[A-Za-z_]{2}(?:256|512|64|5|1)?\??\.?"
    r"(?P<open>[(\[])[\w.,=()\[\]{}:*&|+\-/<>$\"'`]*"
)
_DOTTED: Final = lazy_pattern(r"[!&*]*[A-Za-z_$][A-Za-z_$0-9]*(?:(?:\.|\?\.|::|->)[A-Za-z_$][A-Za-z_$0-9]*)+")
_IDENTIFIER: Final = lazy_pattern(r"[!&*$@:]?[A-Za-z_]+")
_PATH: Final = lazy_pattern(
    r"(?:[a-z]{2,12}:/|~|\.{1,2}|[A-Z]:)?[/\\][a-z0-9_.\-]+(?:[/\\][\w.\-]+)*/?|[a-z]{2,12}://\S*|https?:\S*"
)
_LOCATION: Final = lazy_pattern(r"(?:[A-Za-z]:[\\/]|~?/)[^\s\"'=]*")
_NAME: Final = lazy_pattern(r"[A-Za-z_.]+")
_TYPE: Final = lazy_pattern(r"_?[A-Z][A-Za-z]*")
_BOASTS: Final = _set("my super top very your some secure default the strong test sample example demo")
_NOT_API_KEYS: Final = _REFERENCE_WORDS | _set(
    "configured unconfigured provided given supplied specified available unavailable needed loaded detected obtained"
)
_TALK: Final = _ABOUT | _PROSE | _STATES | _NOTHING
_COMMENT: Final = ("", "#", ";")
_AFTER_TYPE: Final = ("|", "=", ",", ")")
_MIN_DIGITS: Final = {Verdict.WEAK: 6, Verdict.TOKEN: 4, Verdict.SECRET: 3}
_MIN_WEAK: Final = 8
_MIN_RANDOM: Final = 20
_MAX_OPERATOR: Final = 3
_MAX_PLACEHOLDER: Final = 400
_TRAIL: Final = ".,;:!?)]}\"'`"


def is_ordinary(value: str) -> bool:
    """Say whether a value is no secret even beside a key that names one: a placeholder, a version, a colour."""
    if _is_bare_word(value):
        return False
    return _VERSION.fullmatch(value) is not None or (len(value) < _MAX_PLACEHOLDER and is_placeholder(value))


def is_location(value: str) -> bool:
    """Say whether a value is a path: what `PWD` and `SSH_AUTH_SOCK` hold."""
    return _LOCATION.fullmatch(value) is not None


def reads_as_secret(value: str, rest: str, verdict: Verdict, style: Style) -> bool:
    """Say whether a value in text beside a key is a literal secret rather than code, prose or a placeholder.

    `rest` is what follows the value on its line.
    """
    bare = value.rstrip(_TRAIL)
    word = bare.strip().lower()
    ordinary = is_ordinary(value) or (bare != value and is_ordinary(bare))
    if word in _NOTHING or ordinary or (verdict is Verdict.WEAK and is_location(value)):
        return False
    if not any(map(str.isalnum, value)):
        return style < Style.SPACED and len(value) > _MAX_OPERATOR
    if style is Style.ENV:
        return True
    if word in _STATES or _PATH.fullmatch(value):
        return False
    if style is Style.QUOTED:
        return _is_quoted_secret(value, verdict)
    if word.lstrip("-").isdigit():
        return len(word) >= _MIN_DIGITS[verdict]
    return not _is_code(value, rest) and _is_bare_secret(value, word, rest.lstrip(), verdict, style)


def _is_bare_secret(value: str, word: str, rest: str, verdict: Verdict, style: Style) -> bool:
    if verdict is Verdict.WEAK and style > Style.EQUALS:
        return any(map(str.isdigit, value)) and len(value) >= _MIN_WEAK
    bare = value.rstrip(_TRAIL)
    if style is Style.SPACED and _NAME.fullmatch(bare) and (verdict is Verdict.TOKEN or rest[:1] not in _COMMENT):
        return len(word) >= _MIN_RANDOM and "_" not in word
    if style is Style.COLON and _is_annotation(bare, rest, verdict):
        return False
    if not _PLAIN.fullmatch(bare) or len(word) >= _MIN_RANDOM:
        return True
    if verdict is not Verdict.SECRET or word in _PROSE:
        return verdict is Verdict.TOKEN and style is Style.EQUALS and word not in _PROSE
    return style is not Style.COLON or not rest.strip(_TRAIL) or rest[0] in "#,;|)"


def _is_annotation(bare: str, rest: str, verdict: Verdict) -> bool:
    if verdict is Verdict.TOKEN and bare.isupper() and bare.isalpha():
        return len(bare) < _MIN_RANDOM
    return _TYPE.fullmatch(bare) is not None and rest[:1] in _AFTER_TYPE


def _is_quoted_secret(value: str, verdict: Verdict) -> bool:
    words = _PLACEHOLDER.sub(" ", value).split()
    if _PLACEHOLDER.search(value) and all(map(_PLAIN.fullmatch, words)):
        return False
    if len(words) > 2 and words[0].lower() in _PROSE - {"a", "an", "i"}:
        return False
    return verdict is not Verdict.WEAK or len(value) >= _MIN_RANDOM or not all(map(_PLAIN.fullmatch, words))


def _is_code(value: str, rest: str) -> bool:
    call = _CALL.fullmatch(value) if "(" in value or "[" in value else None
    if call:
        closing = ")" if call["open"] == "(" else "]"
        return value.count(call["open"]) == value.count(closing) or closing in rest or value[-1] in "(,[{"
    bare = value.rstrip(_TRAIL + "(")
    if _DOTTED.fullmatch(bare):
        parts = re.split(r"\W+", bare.strip("!&*"))
        return parts[0].lower() in _ROOTS or any(map(judge, parts)) or all(map(_TYPE.fullmatch, parts))
    return _IDENTIFIER.fullmatch(bare) is not None and _is_reference(bare)


def _is_reference(name: str) -> bool:
    """Say whether a name without digits is that of a variable or type holding a secret: `new_password`."""
    words = words_of(name)
    if not words or not _BOASTS.isdisjoint(words):
        return False
    may_be = "_" in name or name[:1].isupper() or _REFERENCE_WORDS.issuperset(words)
    return may_be and bool(judge(name))


def is_about(word: str) -> bool:
    """Whether a word after that of a secret goes on with a sentence: `password rotation`, `password must`."""
    return word.strip(_TRAIL).lower() in _TALK


def is_plain_api_key(key: str, value: str) -> bool:
    """Whether a plain word may be an API key that somebody made up, as people make up passwords: `apikey: sunshine`.

    Neither the name of a variable is one, as in `apiKey: key`, nor what a report says of it: `api_key: configured`.
    """
    bare = value.rstrip(_TRAIL)
    if not _PLAIN.fullmatch(bare) or bare.lower() in _NOT_API_KEYS:
        return False
    return "".join(words_of(key)).endswith(("apikey", "apikeys"))


def is_passphrase(line: str) -> bool:
    """Say whether a line is three or more plain words without any of the small words prose is held together by."""
    words = line.split()
    return len(words) > 2 and all(map(_PLAIN.fullmatch, words)) and _PROSE.isdisjoint(map(str.lower, words))


_SCHEMA_KEYS: Final = frozenset(
    "type title description format minLength maxLength minimum maximum pattern writeOnly readOnly nullable items "
    "required properties additionalProperties deprecated".split()
)
_SCHEMA_TYPES: Final = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
_FIELD_NAMES: Final = frozenset(
    "email username user name login id host url role admin phone address title type status enabled config settings "
    "profile account port database db file path value label count text data expires created updated".split()
)


def pair_names(mapping: Mapping[object, object]) -> list[object]:
    """Return what a name/value pair is called; a path such as `/prod/db/password` is called by its end."""
    names = [item for key, item in mapping.items() if isinstance(key, str) and key.lower() in PAIR_NAMES]
    return [name.rsplit("/", 1)[-1] if isinstance(name, str) else name for name in names]


def is_harmless(verdict: Verdict, item: object) -> bool:
    """Say whether a value beside a key that names a secret is a flag, a placeholder or a description."""
    if isinstance(item, str):
        return not item or is_ordinary(item) or (verdict is Verdict.WEAK and is_location(item))
    if item is None or isinstance(item, bool):
        return True
    if isinstance(item, (int, float)):
        return verdict is Verdict.WEAK and -1000 < item < 1000
    if isinstance(item, Mapping):
        return _is_schema(item) or all(map(_is_flag, item.values()))
    return isinstance(item, (list, tuple, set, frozenset, bytes, bytearray)) and all(map(_is_flag, item))


def _is_flag(item: object) -> bool:
    return item is None or isinstance(item, bool) or (isinstance(item, str) and item in ("", MASK))


def _is_schema(item: Mapping[object, object]) -> bool:
    kind = item.get("type")
    return isinstance(kind, str) and kind in _SCHEMA_TYPES and all(key in _SCHEMA_KEYS for key in item)


def is_named_pair(name: object, value: object) -> bool:
    """Say whether two values in a list are the name of a secret and the secret; one with a mask in it names none."""
    if not isinstance(name, str) or len(name) > MAX_KEY or name.startswith("-") or MASK in name:
        return False
    verdict = judge(name)
    if verdict < Verdict.WEAK or is_harmless(verdict, value):
        return False
    if not isinstance(value, str):
        return True
    if value.lower() in _FIELD_NAMES or (judge(value) and all(len(word) > 2 for word in words_of(value))):
        return False
    return reads_as_secret(value, "", verdict, Style.QUOTED if verdict is Verdict.WEAK else Style.COLON)
