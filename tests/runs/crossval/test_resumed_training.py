"""A fold's training that is killed goes on from its checkpoint, in another process, to the same numbers."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runs.crossval.killed_training import EPOCHS, epochs, train


@pytest.mark.slow
def test_a_killed_training_of_a_fold_goes_on(tmp_path):
    whole = train(tmp_path / "whole", tmp_path / "whole.log")
    assert epochs(tmp_path / "whole.log") == EPOCHS
    folder, log = tmp_path / "killed", tmp_path / "killed.log"
    after = 8  # six of the first training, which is finished, and two of its exposure to outliers
    command = [sys.executable, "-m", "tests.runs.crossval.killed_training", str(folder), str(log), str(after)]
    killed = subprocess.run(command, cwd=Path(__file__).parents[3], check=False, capture_output=True, timeout=240)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert epochs(log) == after and any((folder / "trainings").iterdir())
    resumed = train(folder, log)
    # no epoch was trained twice
    assert epochs(log) == EPOCHS
    assert resumed.draws.frame.equals(whole.draws.frame)
    # what a finished draw needs no more is gone
    assert not any((folder / "trainings").iterdir())
