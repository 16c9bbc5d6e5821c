"""All that is known of a tool under a policy and modes before any arguments: compiled once, replaced whole.

A plan holds the rules with those already decided that look at nothing but the tool and the mode, where the handler
runs, how safe a claim must be, and what every call of the tool begins with. It never decides by itself.
"""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from toolgate.kernel.assessment import ApprovalLevel, Assessment
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Durability, Reservation
from toolgate.kernel.context import DEFAULT_CONTEXT, Context, Mode
from toolgate.kernel.doubt import Doubt, doubt_of
from toolgate.kernel.payload import LARGE
from toolgate.kernel.policy import Facts, Policy, Rule, Stance
from toolgate.kernel.record import evolve, slim
from toolgate.kernel.ruling import Ruling, look, rule_under, rules_over, show_facts
from toolgate.kernel.terms import SandboxBackend
from toolgate.kernel.text.canonical import Limits
from toolgate.kernel.tool import Placement, RiskLevel, ToolDefinition
from toolgate.pipeline.lane import aside
from toolgate.pipeline.validate import Checked, validate

HOUR_S = 3600.0
REMOTE = frozenset({Placement.CLIENT.value, Placement.WORKER.value})
"""The placements whose results come from outside this process."""
CALLER = Placement.CALLER.value
APPROVED_FOR_S = 3600.0
"""How long a call stays approved for its caller to run it, where the policy does not say."""
OFFER_AGAIN_S = 10.0
"""How long a call for a worker waits before its order is sent again: it may have been lost."""
UNREMARKABLE = Assessment(ApprovalLevel.AUTO, RiskLevel.LOW, None, ())
"""The assessment every call is born with."""


_NEVER = datetime.min.replace(tzinfo=UTC)


class Options(NamedTuple):
    """What a caller asks for about its own approval."""

    approval_timeout_s: float | None = None
    message: str | None = None
    claim: str | None = None


NO_OPTIONS = Options()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`modes` are those its calls answer to: the rules are asked under each, and the strictest ruling counts.

    `fixed` is the ruling on every call of this tool in these modes, where nothing about a call can change it.
    `template` is what every call begins as. `reads` says that a rule, inspector or meter looks at arguments,
    `inspects` that finding out what they point at opens files.
    `offer_s` is how long a call for somebody elsewhere waits until its deadline is looked at. `doubt` says what it
    means where a handler does not return.
    """

    tool: ToolDefinition
    policy: Policy
    modes: tuple[Mode, ...]
    stance: Stance
    rules: tuple[Rule, ...]
    fixed: Ruling | None
    template: Call
    placement: str
    durability: Durability
    reads: bool
    inspects: bool
    rates: tuple[Reservation, ...]
    offer_s: float
    mask: Callable[[str], str]
    doubt: Doubt

    def validate(self, raw: str | bytes | Mapping[str, object], limits: Limits) -> Checked:
        """Return the arguments in one canonical form; raise ToolInputError naming tool and location."""
        return validate(self.tool, raw, limits)

    def born(
        self, arguments: Checked, shown: Any, context: Context, *, id: str, now: datetime, options: Options
    ) -> Call:
        """Return a new call of this tool; `shown` are its masked arguments."""
        call = evolve(
            self.template,
            id=id,
            project=context.project,
            context=context,
            created_at=now,
            arguments=arguments.canonical,
            shown=shown,
        )
        if shown is not arguments.value and shown != arguments.value:
            call = evolve(call, hides=True)
        if options is NO_OPTIONS:
            return call
        timeout_s, message, claim = options
        return evolve(call, approval_timeout_s=timeout_s, message=message, claim=claim)

    def judge(self, call: Call, arguments: Mapping[str, Any], now: datetime) -> tuple[Call, Ruling]:
        """Permit and assess a call under the facts of now; returns it with what was found out about it.

        A call that was approved keeps the assessment its approver was shown.
        """
        if self.fixed is not None and call.undo_of is None:
            return call, self.fixed
        facts = look(call, self.tool, self.stance, arguments, mode=self.modes[0], now=now)
        ruling = rule_under(self.modes, call, self.tool, self.stance, self.rules, facts)
        if facts.found:
            call = evolve(call, facts=show_facts(self.stance, facts, self.mask))
        assessment = ruling.assessment
        if assessment is None or call.status is not Status.PENDING or assessment == UNREMARKABLE:
            return call, ruling
        return assessed(call, assessment, self.mask), ruling

    async def judge_aside(self, call: Call, arguments: Mapping[str, Any], now: datetime) -> tuple[Call, Ruling]:
        """Judge off the loop where an inspector opens files, or rules look at much: neither holds up anybody else."""
        if self.inspects:
            return await to_thread(self.judge, call, arguments, now)
        if self.reads and len(call.arguments) > LARGE:
            return await aside(self.judge, call, arguments, now)
        return self.judge(call, arguments, now)

    def reservations(self, call: Call, arguments: Mapping[str, Any]) -> tuple[Reservation, ...]:
        """What a call uses of rates and budgets; an undo uses none."""
        if call.undo_of is not None:
            return ()
        return self.rates + tuple(meter(call, arguments) for meter in self.stance.meters)


def assessed(call: Call, assessment: Assessment, mask: Callable[[str], str]) -> Call:
    """Return a call with what its assessment found, for people to read."""
    reasons = tuple(map(mask, assessment.reasons))
    return evolve(
        call,
        level=assessment.level.value,
        risk=assessment.risk.value,
        confidence=assessment.confidence,
        factors=tuple(map(mask, assessment.factors)),
        reasons=call.reasons if reasons == call.reasons else reasons,  # thousands may wait for the same
    )


def compile_plan(
    tool: ToolDefinition, policy: Policy, modes: tuple[Mode, ...], *, mask: Callable[[str], str] = str
) -> Plan:
    """Work out everything about a tool under a policy and these modes that no call can change."""
    stance = policy.stance(tool)
    rules = rules_over(tool, stance)
    placement = placement_of(tool, stance)
    per_hour = tool.rate_limit_per_hour
    rates = () if per_hour is None else (Reservation(key=f"tool:{tool.name}", limit=per_hour, window_s=HOUR_S),)
    template = _template(tool, stance, policy, placement)
    fixed = _fixed(tool, stance, rules, modes)
    if fixed is not None and fixed.assessment is not None and fixed.assessment != UNREMARKABLE:
        template = slim(assessed(template, fixed.assessment, mask))
    return Plan(
        tool=tool,
        policy=policy,
        modes=modes,
        stance=stance,
        rules=rules,
        fixed=fixed,
        template=template,
        placement=placement.value,
        durability=Durability.COMMITTED if tool.can_retry else Durability.FSYNCED,
        reads=_reads(stance, rules),
        inspects=bool(stance.inspectors),
        rates=rates,
        offer_s=OFFER_AGAIN_S if placement is Placement.WORKER else tool.timeout_seconds,
        mask=mask,
        doubt=doubt_of(tool, stance),
    )


def _fixed(tool: ToolDefinition, stance: Stance, rules: tuple[Rule, ...], modes: tuple[Mode, ...]) -> Ruling | None:
    """Return the ruling on every call in these modes, where no rule, inspector or score looks at the call itself."""
    is_scored = tool.thresholds is not None or stance.thresholds is not None
    if is_scored or stance.inspectors or not all(getattr(rule, "is_static", False) for rule in rules):
        return None
    now = datetime.now(UTC)
    any_call = Call(id="", project="", tool_name=tool.name, context=DEFAULT_CONTEXT, created_at=now)
    return rule_under(modes, any_call, tool, stance, rules, Facts(modes[0], now))


def _reads(stance: Stance, rules: tuple[Rule, ...]) -> bool:
    """Whether anything about a call's arguments can matter: rules of our own that go by the tool and mode say so."""
    may_read = stance.meters or not all(getattr(rule, "is_static", False) for rule in rules)
    return bool(stance.inspectors or (stance.reads_arguments and may_read))


def placement_of(tool: ToolDefinition, stance: Stance) -> Placement:
    """Where calls of this tool run; one that needs a sandbox runs inline only where the policy names none."""
    wanted = stance.placement or tool.runs_in
    unboxed = stance.sandbox is not None and stance.sandbox.backend is SandboxBackend.NONE
    if wanted is Placement.INLINE and tool.requires_sandbox and not unboxed:
        return Placement.SANDBOX
    return wanted


def _template(tool: ToolDefinition, stance: Stance, policy: Policy, placement: Placement) -> Call:
    waits_s = APPROVED_FOR_S if stance.approved_for_s is None else stance.approved_for_s
    call = Call(
        id="",
        project="",
        context=DEFAULT_CONTEXT,
        created_at=_NEVER,
        tool_name=tool.name,
        definition_hash=tool.hash,
        has_effects=tool.has_effects,
        idempotent=tool.idempotent,
        placement=placement.value,
        policy_revision=policy.revision,
        approved_for_s=waits_s if placement is Placement.CALLER else None,
    )
    return slim(call)
