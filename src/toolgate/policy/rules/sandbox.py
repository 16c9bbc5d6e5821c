"""What a sandboxed call may have. Naming a sandbox does not by itself move a tool into one: see `placement`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from toolgate.kernel.terms import SandboxBackend, SandboxTerms
from toolgate.policy.values import Duration, Positive, Share, Site, Spec, Surroundings


class Sandbox(Spec):
    backend: Literal["auto", "bubblewrap", "landlock", "none"] = Field(
        default="auto",
        description="What isolates it. `none` runs without isolation what would otherwise need a sandbox.",
    )
    network: bool = Field(default=False, description="Whether it may use the network.")
    timeout: Duration | None = Field(default=None, description="How long it may run.")
    memory_mb: Positive | None = Field(default=None, description="How many MiB of memory it may use.")
    processes: Positive | None = Field(default=None, description="How many processes it may have.")
    output_bytes: Positive | None = Field(default=None, description="How much it may print; the rest is cut.")
    disk_mb: Positive | None = Field(
        default=None,
        description="How many MiB it may write to the disk in all; 8192 by default, and 512 in an overlay, which is "
        "memory.",
    )


SPEC = Sandbox


def build(spec: Sandbox, _site: Site, _surroundings: Surroundings) -> Share:
    terms = SandboxTerms(
        backend=SandboxBackend(spec.backend),
        network=spec.network,
        timeout_s=spec.timeout,
        memory_mb=spec.memory_mb,
        processes=spec.processes,
        output_bytes=spec.output_bytes,
        disk_mb=spec.disk_mb,
    )
    return Share(sandbox=terms)
