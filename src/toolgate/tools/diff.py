"""Differences, under the module name stageflow has them in."""

from toolgate.kernel.text.diff import DiffLine, DiffResult, DiffType, diff_json, diff_structured, diff_text

__all__ = ["DiffLine", "DiffResult", "DiffType", "diff_json", "diff_structured", "diff_text"]
