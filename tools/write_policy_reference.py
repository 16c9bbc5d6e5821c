"""Write the reference of the policy language from its models, so that it says what the loader does.

Run it after changing a key: `python tools/write_policy_reference.py`. A test fails until that is done.
"""

import types
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from toolgate.policy.document import META, Example, Settings
from toolgate.policy.grammar import CommandSpec
from toolgate.policy.rules import keys
from toolgate.policy.scoring import Scoring
from toolgate.policy.strict_yaml import MAX_BYTES
from toolgate.policy.values import Duration

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "policy-language.md"
META_DOC = {
    "category": "The category the tool belongs to; it takes the place of the definition's own. Only under `tools`.",
    "description": "For readers.",
    "examples": "Calls with the verdict they must get, checked whenever the file is loaded. See [examples](#examples).",
}

HEAD = f"""# Policy language

This page is written by `tools/write_policy_reference.py` from the models that the loader checks files with.

A policy is a YAML file: `toolgate.yaml`, or `config/governance/tools.yaml`, or any file you name.
`toolgate policy check` says whether it is right. Loading is strict: unknown and repeated keys, anchors, aliases, tags,
directives, several documents, words that YAML 1.1 reads as something else (`no`, `on`, `010`, `12:30`), wrong types,
contradictions and files above {MAX_BYTES:,} bytes are errors that name line and column, and the nearest key.
Durations are a number of seconds, or a number with `s`, `m`, `h`, `d` or `w`. `$HOME` and `${{WORKSPACE}}` are the only
variables.

The decision in three lines:

1. Every rule of every layer that speaks of the tool is asked, and the tool's own. Any deny, and any error, denies.
2. Otherwise any ask asks; otherwise any allow allows; otherwise the `default` decides.
3. Order never matters, and no score, risk or allow turns a deny or an ask into less.

"""

LAYERS = """## Layers

`include` brings in other files. Every file belongs to a layer, `org`, `project` or `tool`, and includes files of its
own layer or higher ones. All rules of all files count, so the strictest wins; of settings that cannot be combined as
rules, the stricter counts: the shorter timeout and undo time, the higher quorum, level and thresholds, the lower
limit, the safer sandbox, the stricter default. An approver must hold a role of every layer's `approvers`, and every
layer's `including` must be met. An escalation opens the `approvers` it stands beside, not those of another layer, entry
or condition.

A tool is spoken of by its entry under `tools`, by entries whose name has a `*` that fits, and by the entry of its
category. All of them count.

"""


def shown(kind: Any) -> str:
    """Return a type in words."""
    if kind == Duration:
        return "duration"
    origin = get_origin(kind)
    if origin is Annotated:
        return shown(get_args(kind)[0])
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(shown(one) for one in get_args(kind) if one is not type(None)))
    if origin is Literal:
        return ", ".join(f"`{one}`" for one in get_args(kind))
    if origin is list:
        return f"list of {shown(get_args(kind)[0])}"
    if origin is dict:
        return f"mapping to {shown(get_args(kind)[1])}"
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return "mapping"
    return {str: "text", bool: "true or false", int: "whole number", float: "number"}.get(kind, "anything")


def field_type(field: FieldInfo) -> str:
    """Return a field's type in words; a duration is a float with marks, so it is told by its validator."""
    is_duration = any("_seconds" in repr(mark) for mark in field.metadata) or "_seconds" in repr(field.annotation)
    return "duration" if is_duration else shown(field.annotation)


def default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.default
    if value is None or isinstance(value, BaseModel):
        return ""
    text = {True: "true", False: "false"}.get(value) if isinstance(value, bool) else str(value).replace("'", "")
    return f"`{text}`" if text not in ("", "[]", "{}") else ""


def table(model: type[BaseModel]) -> str:
    """Return the fields of a model as a table."""
    lines = ["| Key | Type | Default | Meaning |", "|---|---|---|---|"]
    for name, field in model.model_fields.items():
        cells = (f"`{field.alias or name}`", field_type(field), default(field), field.description or "")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def models_in(kind: Any) -> list[type[BaseModel]]:
    """Return the models that stand inside a type."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return [kind]
    return [model for inner in get_args(kind) for model in models_in(inner)]


def nested(model: type[BaseModel], seen: set[type[BaseModel]]) -> list[tuple[str, type[BaseModel]]]:
    """Return the models a model's fields hold, each with the field, those inside them included."""
    found = []
    for name, field in model.model_fields.items():
        for inner in models_in(field.annotation):
            if inner not in seen:
                seen.add(inner)
                found += [(name, inner), *nested(inner, seen)]
    return found


def section(level: str, title: str, model: type[BaseModel], text: str = "") -> str:
    """Return a model's section and those of what it holds."""
    parts = [f"{level} {title}\n\n{text}{table(model)}\n"]
    parts += [f"{level}# {title}: {name}\n\n{table(inner)}\n" for name, inner in nested(model, {model})]
    return "".join(parts)


def entry() -> str:
    """Return the section on entries: their keys and what each may hold."""
    lines = ["| Key | Also written | In short |", "|---|---|---|"]
    for key in keys().values():
        spellings = ", ".join(f"`{alias}` for `{field}`" for alias, field in key.aliases.items())
        lines.append(f"| [`{key.name}`](#{key.name}) | {spellings} | {key.doc.splitlines()[0]} |")
    lines += [f"| `{name}` | | {META_DOC[name]} |" for name in META]
    parts = ["## Entries\n\nThe keys of an entry under `tools` or `categories`.\n\n" + "\n".join(lines) + "\n\n"]
    for key in keys().values():
        body = f"### {key.name}\n\n{key.doc}\n\n"
        held = models_in(key.spec)
        if held:
            form = "A list of items.\n\n" if get_origin(key.spec) is list else ""
            body += form + table(held[0]) + "\n"
            body += "".join(
                f"#### {key.name}: {name}\n\n{table(inner)}\n" for name, inner in nested(held[0], {held[0]})
            )
        else:
            body += f"One of {shown(key.spec)}.\n\n"
        parts.append(body)
    return "".join(parts)


def page() -> str:
    """Return the whole page."""
    settings = f"## The file\n\n{table(Settings)}\n"
    grammar = section("##", "Command grammars", CommandSpec, "What may stand under the name of a command.\n\n")
    scoring = section("##", "scoring", Scoring)
    examples = section("##", "examples", Example, "What an item of an entry's `examples` may hold.\n\n")
    return (HEAD + settings + LAYERS + entry() + grammar + scoring + examples).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
