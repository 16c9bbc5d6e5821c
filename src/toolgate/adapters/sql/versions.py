"""Which schemas a version works with: its own, and newer ones that only added to it.

A database says which is the oldest version that may use it, so that servers of two versions can share it while one
replaces the other. A migration that takes something away, or changes what a column means, raises `FLOOR` to its own
revision; one that only adds leaves it.
"""

from __future__ import annotations

from toolgate.errors import StoreError

HEAD = "0014"
"""The schema revision this version needs; a test compares it with the migrations."""
FLOOR = "0012"
"""The oldest revision whose software works with a database at HEAD."""
SETTING = "schema_floor"
"""The name in the table `settings` under which a database keeps the floor of its revision."""


def check(found: str | None, floor: str | None) -> None:
    """Refuse a database at revision `found` that this version cannot use, whose oldest user may be `floor`."""
    if found == HEAD:
        return
    shown = (found or "empty")[:40]
    if found is None or floor is None or not (found.isdigit() and floor.isdigit()) or found < HEAD:
        raise StoreError(
            f"The database is at schema {shown!r}, this version needs {HEAD!r}. Run `toolgate db upgrade` with the "
            "newest version that uses this database; where the table alembic_version belongs to another application, "
            "give Toolgate a database of its own."
        )
    if floor > HEAD:
        raise StoreError(
            f"The database is at schema {shown!r}, made by a newer Toolgate; versions before {floor!r} cannot use it, "
            f"and this one knows {HEAD!r}. Upgrade Toolgate."
        )
