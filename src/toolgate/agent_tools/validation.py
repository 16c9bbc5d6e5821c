"""What a validator answers: yes, or no with the reason. It counts as true where it is a yes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """`valid` and, where it is not, `error`; `value` is what was found out on the way."""

    valid: bool
    error: str | None = None
    value: Any = None

    def __bool__(self) -> bool:
        return self.valid

    @property
    def is_valid(self) -> bool:
        return self.valid

    @classmethod
    def yes(cls, value: Any = None) -> Validation:
        return cls(valid=True, value=value)

    @classmethod
    def no(cls, error: str) -> Validation:
        return cls(valid=False, error=error)
