"""The OpenAPI 3.1 document, made from the operations: whatever is served is described."""

from __future__ import annotations

import re
from typing import Any

from pydantic.json_schema import models_json_schema

from toolgate import __version__
from toolgate.interfaces.server.idempotency import MOST_CHARACTERS
from toolgate.interfaces.server.operations import Operation
from toolgate.interfaces.server.problems import MEDIA_TYPE
from toolgate.kernel.ids import MAX_ID
from toolgate.wire.ids import KINDS
from toolgate.wire.schemas import Problem

_REF = "#/components/schemas/{model}"
_PROBLEMS = {
    400: "The request does not fit.",
    401: "Nobody is signed in.",
    403: "The caller may not do this.",
    404: "There is nothing of this name or id here.",
    409: "Somebody else got there first; the answer says what stands.",
    413: "The body is too large.",
    421: "The server does not answer to this host name.",
    422: "The `Idempotency-Key` was used for another request.",
    429: "Too many requests.",
    500: "The server failed.",
    501: "Not configured on this server.",
    503: "The store cannot be used, or the server is shutting down.",
}
_ALWAYS = (421, 500, 503)


def document(operations: tuple[Operation, ...]) -> dict[str, Any]:
    """Return the whole document."""
    models: list[Any] = [Problem]
    for one in operations:
        models += [model for model in (one.body, one.query, one.returns) if model is not None]
    unique = list(dict.fromkeys(models))
    _, definitions = models_json_schema([(model, "serialization") for model in unique], ref_template=_REF)
    schemas = definitions.get("$defs", {})
    paths: dict[str, dict[str, Any]] = {}
    for one in operations:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one, schemas)
    paths["/ws"] = {"get": _socket()}
    queries = {one.query.__name__ for one in operations if one.query is not None}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Toolgate",
            "version": __version__,
            "description": "Governed tool calls: ask, decide, run at the client, listen.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": {name: schema for name, schema in sorted(schemas.items()) if name not in queries},
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "toolgate_session"},
                "key": {"type": "apiKey", "in": "header", "name": "X-Toolgate-Key"},
            },
        },
        "security": [{"bearer": []}, {"session": [], "key": []}],
    }


def _operation(one: Operation, schemas: dict[str, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": _name(one),
        "summary": one.summary,
        "tags": [one.tag],
        "responses": _responses(one),
    }
    parameters = [_path_parameter(name) for name in re.findall(r"\{(\w+)\}", one.path)]
    parameters += _query_parameters(one, schemas)
    if _takes_key(one):
        parameters.append(_KEY)
    if parameters:
        described["parameters"] = parameters
    if one.body is not None:
        described["requestBody"] = {
            "required": any(field.is_required() for field in one.body.model_fields.values()),
            "description": "Read as JSON whatever the content type.",
            "content": {"application/json": {"schema": _ref(one.body)}},
        }
    if one.verb is None:
        described["security"] = []
    else:
        described["x-toolgate-ability"] = one.ability
    return described


def _takes_key(one: Operation) -> bool:
    return one.method == "POST" and one.ability is not None and one.stream is None


_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "A key of your own: the same request with the same key is answered alike, and carried out once.",
    "schema": {"type": "string", "minLength": 1, "maxLength": MOST_CHARACTERS},
}


def _name(one: Operation) -> str:
    words = [word for word in re.split(r"[^a-z_]+", one.path.removeprefix("/my/projects/{project_id}")) if word]
    return "_".join([one.method.lower(), *words]) or one.method.lower()


def _ref(model: type[Any]) -> dict[str, str]:
    return {"$ref": _REF.format(model=model.__name__)}


def _path_parameter(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "in": "path",
        "required": True,
        "schema": {"type": "string", "minLength": 1, "maxLength": MAX_ID},
    }


def _query_parameters(one: Operation, schemas: dict[str, Any]) -> list[dict[str, Any]]:
    if one.query is None:
        return []
    found = []
    for name, schema in schemas[one.query.__name__]["properties"].items():
        plain = {key: value for key, value in schema.items() if key not in ("title", "description", "default")}
        choices = [choice for choice in plain.get("anyOf", ()) if choice != {"type": "null"}]
        if len(choices) == 1:
            plain = choices[0]
        parameter = {"name": name, "in": "query", "required": False, "schema": plain}
        if "description" in schema:
            parameter["description"] = schema["description"]
        found.append(parameter)
    return found


def _responses(one: Operation) -> dict[str, Any]:
    content = {one.media: {"schema": {"type": "string"} if one.returns is None else _ref(one.returns)}}
    found: dict[str, Any] = {
        str(status): {"description": "Done." if status == one.status else "Not final yet.", "content": content}
        for status in (one.status, *one.also)
    }
    for status in sorted({*_usual(one), *one.problems, *_ALWAYS}):
        found[str(status)] = {"description": _PROBLEMS[status], "content": {MEDIA_TYPE: {"schema": _ref(Problem)}}}
    return found


def _usual(one: Operation) -> set[int]:
    found: set[int] = set()
    if one.verb is not None:
        found |= {401, 403, 429}
    if "{" in one.path:
        found.add(404)
    if any(f"{{{name}}}" in one.path for name in KINDS):
        found.add(400)
    if one.body is not None:
        found |= {400, 413}
    if one.query is not None:
        found.add(400)
    if _takes_key(one):
        found |= {400, 409, 422}
    return found


def _socket() -> dict[str, Any]:
    return {
        "operationId": "get_ws",
        "summary": "Decide and listen over a WebSocket",
        "tags": ["socket"],
        "parameters": [
            {"name": name, "in": "query", "required": False, "schema": {"type": "string"}}
            for name in ("ticket", "project_id")
        ],
        "responses": {
            "101": {"description": "The connection becomes a WebSocket."},
            "403": {"description": "The caller may not connect."},
        },
    }
