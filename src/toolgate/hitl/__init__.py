"""Human in the loop by confidence: decorate an async function, and its calls run, ask, or wait in the queue.

    @hitl_tool(approval_type="contract", risk_level="high", auto_threshold=95, quick_threshold=70)
    async def sign_contract(contract_id: str, amount: float) -> dict: ...

    result = await sign_contract("C-1", 5000, _hitl_context={"user_id": "ann", "user_role": "admin"})
    if is_hitl_pending(result):
        approval_id = result["hitl_result"]["approval_id"]
        ...                                   # a person decides: get_hitl_gate().decide(approval_id, "approve", by=...)
        result = await resume(approval_id)    # the function's own result; it ran once

`_hitl_context` is the host's word about who calls. Arguments a model wrote go through `invoke`, where it is refused.
"""

from toolgate.hitl.decorators import (
    as_tool,
    get_hitl_config,
    hitl_tool,
    invoke,
    is_hitl_pending,
    is_hitl_tool,
    resume,
)
from toolgate.hitl.gate import clear_hitl_gate, get_hitl_gate, set_hitl_gate
from toolgate.hitl.models import HITLConfig, HITLToolResult, determine_approval_level
from toolgate.kernel.assessment import ApprovalLevel
from toolgate.kernel.confidence import calculate_confidence

__all__ = [
    "ApprovalLevel",
    "HITLConfig",
    "HITLToolResult",
    "as_tool",
    "calculate_confidence",
    "clear_hitl_gate",
    "determine_approval_level",
    "get_hitl_config",
    "get_hitl_gate",
    "hitl_tool",
    "invoke",
    "is_hitl_pending",
    "is_hitl_tool",
    "resume",
    "set_hitl_gate",
]
