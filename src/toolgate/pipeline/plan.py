"""All that is known of a tool under a policy and modes before any arguments: compiled once, replaced whole.

A plan holds the rules with those already decided that look at nothing but the tool and the mode, where the handler
runs, how safe a claim must be, and what every call of the tool begins with. It never decides by itself.
"""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypedDict, cast

from toolgate.kernel.assessment import ApprovalLevel, Assessment
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Durability, Reservation
from toolgate.kernel.context import DEFAULT_CONTEXT, Context, Mode
from toolgate.kernel.doubt import Doubt, doubt_of, may_repeat
from toolgate.kernel.effect import EffectKey
from toolgate.kernel.holding import ask_key, doubt_key
from toolgate.kernel.payload import LARGE
from toolgate.kernel.policy import Facts, Policy, Rule, Stance
from toolgate.kernel.record import evolve, slim
from toolgate.kernel.ruling import Ruling, look, rule_under, rules_over, show_facts
from toolgate.kernel.terms import SandboxBackend
from toolgate.kernel.text.canonical import Limits
from toolgate.kernel.text.masking import Masker
from toolgate.kernel.text.masking.echo import CallMasker, mask_alike
from toolgate.kernel.tool import Effects, Placement, RiskLevel, ToolDefinition
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


_PLAIN = Masker()
_NEVER = datetime.min.replace(tzinfo=UTC)


class Options(NamedTuple):
    """What a caller asks for: about its own approval, and about calls that are alike.

    `repeat_of` is the call whose effect is to be had again, `distinct` says that it joins no other, and `held_key` is
    the key of its effect where another gate holds that: it is passed on, and not taken here.
    """

    approval_timeout_s: float | None = None
    message: str | None = None
    claim: str | None = None
    repeat_of: str | None = None
    distinct: bool = False
    held_key: str | None = None


NO_OPTIONS = Options()


class Keys(TypedDict, total=False):
    """The fields of a call by which it, or its effect, is known again."""

    held_key: str
    effect_key: str
    doubt_key: str
    ask_key: str
    is_named: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`modes` are those its calls answer to: the rules are asked under each, and the strictest ruling counts.

    `fixed` is the ruling on every call of this tool in these modes, where nothing about a call can change it.
    `template` is what every call begins as. `reads` says that a rule, inspector or meter looks at arguments,
    `inspects` that finding out what they point at opens files.
    `offer_s` is how long a call for somebody elsewhere waits until its deadline is looked at. `doubt` says what it
    means where a handler does not return. `effect` makes the keys of its effects, where it has them; `is_declared` and
    `is_final` say of the others that they have effects, and that these cannot be taken back.
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
    masker: Masker
    doubt: Doubt
    effect: EffectKey | None
    is_declared: bool
    is_final: bool

    def validate(self, raw: str | bytes | Mapping[str, object], limits: Limits) -> Checked:
        """Return the arguments in one canonical form; raise ToolInputError naming tool and location."""
        return validate(self.tool, raw, limits)

    def born(
        self,
        arguments: Checked,
        shown: Any,
        context: Context,
        *,
        id: str,
        now: datetime,
        options: Options,
        is_named: bool = False,
    ) -> Call:
        """Return a new call of this tool; `shown` are its masked arguments.

        Raises ToolInputError where they make no effect key.
        """
        is_known_again = self.effect is not None or self.is_declared or options.held_key is not None
        keys: Keys = self._keys(arguments, shown, context, options, is_named=is_named) if is_known_again else {}
        call = evolve(
            self.template,
            id=id,
            project=context.project,
            context=context,
            created_at=now,
            arguments=arguments.canonical,
            shown=shown,
            **keys,
        )
        if shown is not arguments.value and shown != arguments.value:
            call = evolve(call, hides=True)
        if options is NO_OPTIONS:
            return call
        return evolve(
            call,
            approval_timeout_s=options.approval_timeout_s,
            message=options.message,
            claim=options.claim,
            repeat_of=options.repeat_of,
            distinct=options.distinct,
        )

    def _keys(self, arguments: Checked, shown: Any, context: Context, options: Options, *, is_named: bool) -> Keys:
        """By what a call, or its effect, is known again."""
        if options.held_key is not None:
            return {"held_key": options.held_key}
        name = self.tool.name
        if self.effect is not None:
            key = self.effect.of(arguments.value, shown, name)
            return {"effect_key": key, "is_named": True} if is_named else {"effect_key": key}
        keys: Keys = {}
        if self.is_final:
            keys["doubt_key"] = doubt_key(name, arguments.canonical)
        if context.run_id is not None and not options.distinct:
            keys["ask_key"], keys["is_named"] = ask_key(name, arguments.canonical, context), is_named
        return keys

    def judge(self, call: Call, arguments: Mapping[str, Any], now: datetime) -> tuple[Call, Ruling]:
        """Permit and assess a call under the facts of now; returns it with what was found out about it.

        A call that was approved keeps the assessment its approver was shown.
        """
        if self.fixed is not None and call.undo_of is None:
            return call, self.fixed
        facts = look(call, self.tool, self.stance, arguments, mode=self.modes[0], now=now)
        ruling = rule_under(self.modes, call, self.tool, self.stance, self.rules, facts)
        if facts.found:
            call = evolve(call, facts=self._shown(call, facts))
        assessment = ruling.assessment
        if assessment is None or call.status is not Status.PENDING or assessment == UNREMARKABLE:
            return call, ruling
        return assessed(call, assessment, self.masker.repeated), ruling

    def _shown(self, call: Call, facts: Facts) -> dict[str, Any]:
        """Return what was found, masked as a whole: what is secret of a word is told by those beside it."""
        mask = CallMasker(self.masker, call) if call.hides else self.masker
        return cast(dict[str, Any], mask_alike(mask, show_facts(self.stance, facts)))

    async def judge_aside(self, call: Call, arguments: Mapping[str, Any], now: datetime) -> tuple[Call, Ruling]:
        """Judge off the loop where an inspector opens files, or rules look at much: neither holds up anybody else."""
        if self.inspects:
            return await to_thread(self.judge, call, arguments, now)
        if self.reads and len(call.arguments) > LARGE:
            return await aside(self.judge, call, arguments, now)
        return self.judge(call, arguments, now)

    def reservations(self, call: Call, arguments: Mapping[str, Any]) -> tuple[Reservation, ...]:
        """What a call uses of rates and budgets; an undo uses none."""
        if call.undo_of is not None or not (self.rates or self.stance.meters):
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


def compile_plan(tool: ToolDefinition, policy: Policy, modes: tuple[Mode, ...], *, masker: Masker = _PLAIN) -> Plan:
    """Work out everything about a tool under a policy and these modes that no call can change."""
    stance = policy.stance(tool)
    rules = rules_over(tool, stance)
    placement = placement_of(tool, stance)
    per_hour = tool.rate_limit_per_hour
    rates = () if per_hour is None else (Reservation(key=f"tool:{tool.name}", limit=per_hour, window_s=HOUR_S),)
    template = _template(tool, stance, policy, placement)
    fixed = _fixed(tool, stance, rules, modes)
    if fixed is not None and fixed.assessment is not None and fixed.assessment != UNREMARKABLE:
        template = slim(assessed(template, fixed.assessment, masker.repeated))
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
        masker=masker,
        doubt=doubt_of(tool, stance),
        effect=stance.effect or tool.effect,
        is_declared=tool.effects in (Effects.REVERSIBLE, Effects.IRREVERSIBLE),
        is_final=tool.effects is Effects.IRREVERSIBLE and not may_repeat(tool, stance),
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
        effect_per_s=None if stance.effect is None else stance.effect.per_s,
    )
    return slim(call)
