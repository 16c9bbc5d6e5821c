"""How large what a tool handles may be, counted in bytes: files it touches and texts it is given."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from toolgate.kernel.call import Call
from toolgate.kernel.policy import Facts, Verdict, Word
from toolgate.kernel.tool import ToolDefinition
from toolgate.policy.targets import PathTarget
from toolgate.policy.values import Positive, Share, Site, Spec, Surroundings
from toolgate.ports.confinement import MEBIBYTE

ALIASES = {"max_file_size_mb": "max_file_mb"}


class Sizes(Spec):
    max_file_mb: Annotated[float, Field(gt=0)] | None = Field(
        default=None, description="No file it touches, and no text it is given, is larger than this many MiB."
    )
    max_argument_bytes: Positive | None = Field(default=None, description="No text it is given is longer than this.")


SPEC = Sizes


@dataclass(frozen=True, slots=True)
class SizesRule:
    """Deny what is too large. Sizes of files come from the open file, those of texts are bytes of UTF-8."""

    file_bytes: int | None
    text_bytes: int | None
    site: Site
    name: str = "sizes"

    def __call__(self, _call: Call, _tool: ToolDefinition, facts: Facts, /) -> Verdict | None:
        if self.text_bytes is not None:
            for where, size in text_sizes(facts.arguments):
                if size > self.text_bytes:
                    reason = f"argument '{where}' has {size:,} bytes; at most {self.text_bytes:,} are allowed"
                    return Verdict(Word.DENY, reason, self.name, "too_large")
        if self.file_bytes is not None:
            paths: tuple[PathTarget, ...] = facts.found["paths"]
            for target in paths:
                size = 0 if target.fact is None or target.fact.kind != "file" else target.fact.size or 0
                if size > self.file_bytes:
                    reason = f"file {target.given} has {size:,} bytes; at most {self.file_bytes:,} are allowed"
                    return Verdict(Word.DENY, reason, self.name, "too_large")
        return None


def text_sizes(value: Any, where: str = "") -> Iterator[tuple[str, int]]:
    """Yield where every text among the arguments stands, and how many bytes it has."""
    if isinstance(value, str):
        yield where, len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
        return
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in inside:
        yield from text_sizes(inner, f"{where}.{name}" if where else str(name))


def build(spec: Sizes, site: Site, _surroundings: Surroundings) -> Share:
    file_bytes = None if spec.max_file_mb is None else int(spec.max_file_mb * MEBIBYTE)
    limits = [limit for limit in (file_bytes, spec.max_argument_bytes) if limit is not None]
    rule = SizesRule(file_bytes, min(limits) if limits else None, site)
    return Share(rules=[rule], reads_arguments=True, judges_paths=file_bytes is not None)
