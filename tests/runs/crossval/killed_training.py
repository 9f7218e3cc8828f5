"""A small cross-validation with a network per fold that counts its epochs, and kills its process after some of them."""

import os
import signal
import sys
from pathlib import Path
from unittest.mock import patch

from oodscope.data.preprocess import Preprocess
from oodscope.models.zoo.zoo import create_model
from oodscope.runs.crossval.draws import Pair
from oodscope.runs.crossval.engine import cross_validate
from oodscope.runs.crossval.networks import FullTraining
from oodscope.runs.crossval.plan import CrossValidationPlan
from oodscope.training.loop.loop import Loop
from oodscope.training.methods.cross_entropy import CrossEntropy
from tests.runs.crossval.crossval_world import known, strange

EPOCHS = 2 * (6 + 5)
"""Of two folds, each trained and then exposed to outliers."""


def epochs(log):
    return len(log.read_text().splitlines()) if log.exists() else 0


def train(folder, log, die_after=0):
    """Cross-validate; every epoch leaves a line in the log and a checkpoint."""
    close = Loop.close_epoch

    def counted(self):
        close(self)
        self.save()
        with log.open("a") as lines:
            lines.write("epoch\n")
        if epochs(log) == die_after:
            os.kill(os.getpid(), signal.SIGKILL)

    plan = CrossValidationPlan(folds=2, repetitions=1, hold_outs=0, detectors=("msp", "ebo"))
    recipe = CrossEntropy(epochs=6, batch_size=32)
    build = lambda classes: create_model("small_cnn", num_classes=classes)[0]  # noqa: E731
    trainer = FullTraining(build, recipe, Preprocess(size=8), name="small_cnn", device="cpu")
    pair = Pair(known(count=40), strange(count=24, classes=4))
    with patch.object(Loop, "close_epoch", counted):
        return cross_validate(plan, [pair], trainer, folder=folder)


if __name__ == "__main__":
    train(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
