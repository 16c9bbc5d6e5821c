"""Start the suite by path (`python benchmarks/run.py`), with the repository's root on the module path.

The folder itself must not be on the path: scripts in it may carry the names of the libraries they measure.
"""

import runpy
import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parent.parent)
runpy.run_module("benchmarks.suite", run_name="__main__")
