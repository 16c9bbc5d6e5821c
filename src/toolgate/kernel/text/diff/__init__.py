"""Compare texts, JSON documents and records: what changed, how much, and a patch that applies.

This is the front of the `diff_...` files of the kernel: `diff_text` for lines, `diff_json` for a JSON Patch,
`diff_structured` for records shown to people. They change nothing and read no files.
"""

from toolgate.kernel.text.diff.json_tree import diff_json
from toolgate.kernel.text.diff.result import DiffLine, DiffResult, DiffType
from toolgate.kernel.text.diff.structured import diff_structured
from toolgate.kernel.text.diff.text import diff_text

__all__ = ["DiffLine", "DiffResult", "DiffType", "diff_json", "diff_structured", "diff_text"]
