"""Events as leaves: a frame in the clear and content apart from it. Every chain is checked, then made anew."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from typing import Any

import orjson
import sqlalchemy as sa
from alembic import op

from toolgate.errors import StoreError

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_CONTENT = frozenset(
    {
        "comment", "data", "difference", "error", "error_message", "factors", "message", "output_summary", "pattern",
        "payload_summary", "problem", "problems", "progress", "reason", "reasons", "response",
    }
)  # fmt: skip
"""What events said of arguments, results and people's words when this revision was made."""
_SALT_BYTES = 16
_PAGE = 2000

Rewritten = tuple[bytes, bytes | None, bytes]
"""A frame, its content, and the hash."""


def upgrade() -> None:
    _see_everything()
    with op.batch_alter_table("events") as table:
        table.alter_column("body", new_column_name="frame", existing_type=sa.LargeBinary(), existing_nullable=False)
        table.add_column(sa.Column("content", sa.LargeBinary(), nullable=True))
    _rewrite(_old_genesis, _new_genesis, _as_leaf)


def downgrade() -> None:
    _see_everything()
    _rewrite(_new_genesis, _old_genesis, _as_body)
    with op.batch_alter_table("events") as table:
        table.drop_column("content")
        table.alter_column("frame", new_column_name="body", existing_type=sa.LargeBinary(), existing_nullable=False)


def _see_everything() -> None:
    """Let this transaction past the wall between projects."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute("SELECT set_config('toolgate.projects', '*', true)")


def _old_genesis(project: str) -> bytes:
    return hashlib.sha256(b"toolgate-chain-1\x00" + project.encode()).digest()


def _new_genesis(project: str) -> bytes:
    return hashlib.sha256(b"toolgate-chain-2\x00" + project.encode()).digest()


def _rewrite(before: Callable[[str], bytes], after: Callable[[str], bytes], convert: Callable[..., Rewritten]) -> None:
    """Check every chain in its old form, to its recorded end, and write it in the other, from where it begins."""
    connection = op.get_bind()
    heads = sa.text("SELECT project_id, seq, hash, base_seq, base_hash FROM chain_heads")
    for project, last_seq, last_hash, base_seq, base_hash in connection.execute(heads).fetchall():
        old, new, seq = base_hash or before(project), base_hash or after(project), base_seq
        page = sa.text(
            "SELECT seq, frame, content, prev, hash FROM events WHERE project_id=:project AND seq>:seq "
            "ORDER BY seq LIMIT :most"
        )
        while rows := connection.execute(page, {"project": project, "seq": seq, "most": _PAGE}).fetchall():
            written = []
            for found, *parts in rows:
                which = f"event {found} of '{project}'"
                try:
                    frame, content, prev, digest = (None if part is None else bytes(part) for part in parts)
                    if found != seq + 1 or prev != old:
                        raise StoreError(
                            f"Event {seq + 1} of project '{project}' is missing or altered; nothing was changed."
                        )
                    frame, content, made = convert(frame, content, old, digest, new, which)
                except (TypeError, ValueError, KeyError, AttributeError):  # somebody wrote there what no event is
                    raise StoreError(
                        f"The chain is broken at {which}: it cannot be read. Nothing was changed."
                    ) from None
                row = {"project": project, "seq": found, "frame": frame, "content": content, "prev": new, "hash": made}
                written.append(row)
                old, new, seq = digest, made, found
            connection.execute(
                sa.text(
                    "UPDATE events SET frame=:frame, content=:content, prev=:prev, hash=:hash "
                    "WHERE project_id=:project AND seq=:seq"
                ),
                written,
            )
        if (seq, old) != (last_seq, bytes(last_hash)):
            raise StoreError(
                f"The chain of project '{project}' does not end at its recorded head: its last events are missing or "
                "altered. Nothing was changed."
            )
        end = {"project": project, "hash": new}
        connection.execute(sa.text("UPDATE chain_heads SET hash=:hash WHERE project_id=:project"), end)


def _as_leaf(body: bytes, _: bytes | None, old: bytes, digest: bytes, new: bytes, which: str) -> Rewritten:
    if hashlib.sha256(old + body).digest() != digest:
        raise StoreError(f"The chain is broken at {which}: it was altered. Nothing was changed.")
    told: dict[str, Any] = orjson.loads(body)
    data = told.pop("data")
    said = {name: data.pop(name) for name in [*data] if name in _CONTENT}
    content, frame = None, {**told, "data": data}
    if said:
        content = os.urandom(_SALT_BYTES) + orjson.dumps(said)
        frame = {"content": hashlib.sha256(content).hexdigest(), **frame}
    leaf = orjson.dumps(frame)
    return leaf, content, _hash_of_leaf(leaf, new)


def _as_body(leaf: bytes, content: bytes | None, old: bytes, digest: bytes, new: bytes, which: str) -> Rewritten:
    if _hash_of_leaf(leaf, old) != digest:
        raise StoreError(f"The chain is broken at {which}: it was altered. Nothing was changed.")
    told: dict[str, Any] = orjson.loads(leaf)
    told.pop("content", None)
    if content is not None:
        told["data"] |= orjson.loads(content[_SALT_BYTES:])
    body = orjson.dumps(told, option=orjson.OPT_SORT_KEYS)
    return body, None, hashlib.sha256(new + body).digest()


def _hash_of_leaf(leaf: bytes, prev: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + prev + hashlib.sha256(b"\x00" + leaf).digest()).digest()
