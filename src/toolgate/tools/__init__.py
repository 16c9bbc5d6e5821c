"""The tools door: the names documents 000 and 001 use, thin over the gate."""

from toolgate.kernel.approval import ApprovalStatus
from toolgate.kernel.undo import UndoMetadata
from toolgate.tools.approval import ApprovalDecision, ApprovalRequest, ApprovalService
from toolgate.tools.undo import UndoStore

__all__ = [
    "ApprovalDecision",
    "ApprovalRequest",
    "ApprovalService",
    "ApprovalStatus",
    "UndoMetadata",
    "UndoStore",
]
