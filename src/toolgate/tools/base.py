"""The class form of a tool, under the module name stageflow has it in."""

from toolgate.tools.definitions import BaseTool, Tool, ToolInput, ToolOutput

__all__ = ["BaseTool", "Tool", "ToolInput", "ToolOutput"]
