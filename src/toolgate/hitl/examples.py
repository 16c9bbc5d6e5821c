"""Four tools to learn from and to build on. They answer as a system would; what they do is yours to fill in."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from toolgate.hitl.decorators import HITLTool, hitl_tool


@hitl_tool(
    approval_type="contract",
    risk_level="high",
    auto_threshold=95,
    quick_threshold=70,
    requires_reason=True,
    approve_label="Sign contract",
    reject_label="Do not sign",
    description_template="Sign contract {contract_id} for {amount}?",
)
async def sign_contract(contract_id: str, amount: float, terms: str = "") -> dict[str, Any]:
    """Sign a contract.

    Args:
        contract_id: The contract to sign.
        amount: What it is worth.
        terms: Special terms, if there are any.
    """
    return {"status": "signed", "contract_id": contract_id, "amount": amount, "terms": terms, "signed_at": _now()}


@hitl_tool(
    approval_type="deletion",
    risk_level="high",
    auto_threshold=90,
    quick_threshold=60,
    requires_reason=True,
    approve_label="Delete project",
    reject_label="Keep project",
    description_template="Delete project {project_id}?",
)
async def delete_project(project_id: str, reason: str = "") -> dict[str, Any]:
    """Delete a project and everything in it.

    Args:
        project_id: The project to delete.
        reason: Why it should go.
    """
    return {"status": "deleted", "project_id": project_id, "reason": reason, "deleted_at": _now()}


@hitl_tool(
    approval_type="expense",
    risk_level="medium",
    auto_threshold=85,
    quick_threshold=65,
    approve_label="Approve expense",
    reject_label="Reject expense",
    description_template="Approve expense {expense_id} of {amount}?",
)
async def approve_expense(expense_id: str, amount: float, category: str = "general") -> dict[str, Any]:
    """Approve an expense report.

    Args:
        expense_id: The expense to approve.
        amount: How much it is.
        category: What it was spent on.
    """
    return {
        "status": "approved",
        "expense_id": expense_id,
        "amount": amount,
        "category": category,
        "approved_at": _now(),
    }


@hitl_tool(
    approval_type="notification",
    risk_level="low",
    auto_threshold=80,
    quick_threshold=50,
    approve_label="Send",
    reject_label="Do not send",
    description_template="Send a notification to {recipients}?",
)
async def send_bulk_notification(recipients: list[str], message: str) -> dict[str, Any]:
    """Send one message to many people.

    Args:
        recipients: Who gets it.
        message: What it says.
    """
    return {"status": "sent", "recipients": len(recipients), "message": message, "sent_at": _now()}


def get_hitl_tools() -> list[HITLTool]:
    """Return the four tools."""
    return [sign_contract, delete_project, approve_expense, send_bulk_notification]


def _now() -> str:
    return datetime.now(UTC).isoformat()
