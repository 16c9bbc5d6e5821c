"""The agent tools door: what is checked before a tool call goes to a client, and how risky it is.

A validator answers with a `Validation`; it raises nothing and changes nothing.
"""

from __future__ import annotations

from toolgate.agent_tools.commands import CommandValidator
from toolgate.agent_tools.paths import PathValidator
from toolgate.agent_tools.risk import RiskAssessor
from toolgate.agent_tools.sizes import SizeLimiter
from toolgate.agent_tools.validation import Validation
from toolgate.kernel.tool import RiskLevel

__all__ = ["CommandValidator", "PathValidator", "RiskAssessor", "RiskLevel", "SizeLimiter", "Validation"]
