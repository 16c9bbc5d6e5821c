"""Compare texts, JSON documents and records: what changed, how much, and a patch that applies.

This is the front of the `diff_...` files of the kernel: `diff_text` for lines, `diff_json` for a JSON Patch,
`diff_structured` for records shown to people. They change nothing and read no files.
"""

from toolgate.kernel.diff_json import diff_json
from toolgate.kernel.diff_result import DiffLine, DiffResult, DiffType
from toolgate.kernel.diff_structured import diff_structured
from toolgate.kernel.diff_text import diff_text

__all__ = ["DiffLine", "DiffResult", "DiffType", "diff_json", "diff_structured", "diff_text"]
