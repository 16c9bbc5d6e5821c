"""Toolgate's side of the diff section: `python -m benchmarks.toolgate_diff <case>`. Prints one JSON line."""

from benchmarks.diff_cases import run

from toolgate.kernel.text.diff import diff_json, diff_text

if __name__ == "__main__":
    run(diff_text, diff_json)
