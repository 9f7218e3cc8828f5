"""Processes of their own, and what they cost."""

import os
import resource
import subprocess
import sys
import textwrap
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"


def python(*arguments, folder=None):
    """Run an interpreter; CPU seconds and the finished process."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(SOURCE), str(SOURCE.parent)]),
        "OMP_NUM_THREADS": "1",
    }
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, *map(str, arguments)], capture_output=True, text=True, cwd=folder, env=environment
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done


def script(text, folder=None):
    """Run lines of Python; the finished process."""
    done = python("-c", textwrap.dedent(text), folder=folder)[1]
    assert done.returncode == 0, done.stderr
    return done


def cheapest(*arguments, times=3):
    """CPU seconds of the cheapest of several equal runs: the least disturbed by others."""
    return min(python(*arguments)[0] for _ in range(times))
