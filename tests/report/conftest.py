"""The synthetic run of ``tests/results`` serves the report too."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "results"))
