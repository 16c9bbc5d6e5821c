"""From the name of a model to an agent on a gate."""

from __future__ import annotations

from toolgate.agent.limits import Limits
from toolgate.agent.model import Model
from toolgate.agent.resident import Resident
from toolgate.agent.scripted import ScriptedModel
from toolgate.gate import Gate
from toolgate.ports.threads import Threads

SCRIPTED = "scripted"

INSTRUCTIONS = (
    "You work for a person by calling tools. Every call is checked by a policy, and some wait for a person to approve "
    "them; that is normal. When a call is denied or rejected, do not try to get around it: say so, and say what you "
    "would need. Do what was asked and no more, then answer briefly what you did and found."
)


def build_agent(
    gate: Gate,
    threads: Threads,
    *,
    model: str = SCRIPTED,
    base_url: str | None = None,
    key: str | None = None,
    instructions: str = "",
    limits: Limits | None = None,
    timeout_s: float = 120.0,
    retries: int = 2,
) -> Resident:
    """Return an agent that asks this model; ModelError or UsageError where it cannot be used.

    The key is hidden wherever this gate masks, as every other secret is.
    """
    return Resident(
        gate,
        threads,
        _model(gate, model, base_url, key, timeout_s),
        limits=limits,
        instructions="\n\n".join(part for part in (INSTRUCTIONS, instructions) if part),
        retries=retries,
    )


def _model(gate: Gate, name: str, base_url: str | None, key: str | None, timeout_s: float) -> Model:
    if name == SCRIPTED:
        return ScriptedModel()
    from toolgate.agent.provider import ProviderModel  # loads slowly, and is an extra

    model = ProviderModel.open(name, base_url=base_url, key=key, timeout_s=timeout_s)
    if model.key is not None:
        gate.host.masker.add(model.key)
    return model
