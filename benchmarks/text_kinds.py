"""Eleven kinds of text that calls carry, each of one size: what masking and cards must be quick with, alike.

The texts are the same in every run. `SECRET` names the kinds that are full of secrets; the others hold none.
"""

import argparse
import base64
import inspect
import json
import random
import typing
from collections.abc import Callable

SECRET = ("userinfo", "secrets")

_WORDS = (
    "the gate asks a person before the call runs and keeps what was said order invoice customer meeting river window "
    "garden shipment quarter table memory process value number morning answer letter office travel budget season"
).split()
_ACCENTED = "é à ü façade naïve señor Zürich straße crème brûlée œuvre Ångström été über déjà garçon København".split()
_EMOJI = ("😀", "🎉", "🚀", "👩‍💻", "🏳️‍🌈", "✨", "🔥", "🙏🏽", "💯", "👨‍👩‍👧‍👦", "❤️", "🇩🇪", "1️⃣")
_ALPHABET = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"


def kinds(size: int) -> dict[str, str]:
    """Return each kind's name with a text of it, of `size` bytes or a few less."""
    dice = random.Random(18)
    return {
        "plain": _fill(lambda: _sentence(dice, _WORDS), size),
        "accented": _fill(lambda: _sentence(dice, (*_WORDS, *_ACCENTED)), size),
        "source": _source(size),
        "base64": base64.b64encode(dice.randbytes(size)).decode()[:size],
        "digits": "".join(dice.choices("0123456789", k=size)),
        "json": _fill(lambda: json.dumps(_record(dice)) + "\n", size),
        "logs": _fill(lambda: _log(dice), size),
        "urls": _fill(lambda: _url(dice), size),
        "userinfo": _fill(lambda: "http://a:b@", size),
        "emoji": _fill(lambda: dice.choice(_EMOJI) + (f" {dice.choice(_WORDS)} " if dice.random() < 0.2 else ""), size),
        "secrets": _fill(lambda: _secret(dice), size),
    }


def _fill(make: Callable[[], str], size: int) -> str:
    parts: list[str] = []
    length = 0
    while length < size:
        part = make()
        parts.append(part)
        length += len(part.encode())
    return "".join(parts).encode()[:size].decode(errors="ignore")


def _sentence(dice: random.Random, words: tuple[str, ...] | list[str]) -> str:
    return " ".join(dice.choices(words, k=12)) + "." + dice.choice("   \n")


def _source(size: int) -> str:
    """Python source: of the standard library, so that it is real and everywhere."""
    text = "".join(inspect.getsource(module) for module in (argparse, inspect, json, random, typing))
    return (text * (1 + size // len(text)))[:size]


def _record(dice: random.Random) -> dict[str, object]:
    items = [{"sku": f"SKU-{dice.randrange(10**5)}", "count": dice.randrange(9)} for _ in range(3)]
    note = " ".join(dice.choices(_WORDS, k=6))
    return {"id": dice.randrange(10**6), "note": note, "items": items, "open": True, "total": dice.random()}


def _log(dice: random.Random) -> str:
    at = f"2026-11-{dice.randrange(1, 28):02} 12:{dice.randrange(60):02}:{dice.randrange(60):02}"
    took = f"status=200 took={dice.randrange(999)}ms path=/api/orders/{dice.randrange(10**5)}"
    return f"{at} INFO [worker-{dice.randrange(9)}] app.orders: user={dice.choice(_WORDS)} {took}\n"


def _url(dice: random.Random) -> str:
    query = f"page={dice.randrange(99)}&sort={dice.choice(_WORDS)}&lang=en"
    return f"https://{dice.choice(_WORDS)}.example.com/{dice.choice(_WORDS)}/{dice.randrange(10**5)}?{query}\n"


def _secret(dice: random.Random) -> str:
    """A line that holds a secret of some shape, or a sentence now and then."""
    key = "".join(dice.choices(_ALPHABET, k=36))
    return dice.choice(
        (
            f"password={key[:12]}\n",
            f"{dice.choice(_WORDS)} {dice.choice(_WORDS)} ghp_{key} {dice.choice(_WORDS)}\n",
            f'"api_key": "{key[:24]}",\n',
            f"postgres://app:{key[:10]}@db.example.com/main\n",
            f"Authorization: Bearer {key[:32]}\n",
            f"AKIA{key[:16].upper()}\n",
            f"{' '.join(dice.choices(_WORDS, k=9))}\n",
        )
    )
