"""What ranks do in tests: trainings that they share; torchrun runs it as a program, tests in forked processes."""

import json
import os
import socket
import sys
import time
from pathlib import Path

import torch
from torch import nn

from oodscope.training.train import train
from tests.training.training_toys import PREPROCESS, RECIPE, Bare, Listener, TinyNet, colours

IMAGES = 95
"""Six batches of 16 and 15 images: no share of the odd ones is equal."""


class Plain(Bare):
    """Without batch norm."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.Identity()


NETWORKS = {"plain": Plain, "norm": Bare, "dropout": TinyNet}


def train_shared(folder: Path, network: str = "plain", *, after=lambda done: None, ranks: bool = True, **changes):
    """Two epochs of a small network; where nothing else is said by all ranks together."""
    return train(
        NETWORKS[network],
        RECIPE.model_copy(update={"epochs": 2, **changes}),
        colours(IMAGES),
        PREPROCESS,
        val=colours(31, seed=1),
        folder=folder,
        device="cpu",
        ranks=ranks,
        progress=Listener(after),
    )


def as_torchrun(number: int, count: int, port: int) -> dict[str, str]:
    """The variables that torchrun gives a rank."""
    return {
        "TORCHELASTIC_RUN_ID": "test",
        "RANK": str(number),
        "LOCAL_RANK": str(number),
        "GROUP_RANK": "0",
        "WORLD_SIZE": str(count),
        "LOCAL_WORLD_SIZE": str(count),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "TORCHELASTIC_USE_AGENT_STORE": "False",
    }


def as_srun(number: int, count: int, port: int) -> dict[str, str]:
    """The variables that srun gives a task."""
    return {
        "SLURM_JOB_ID": "7",
        "SLURM_JOB_NAME": "train",
        "SLURM_NTASKS": str(count),
        "SLURM_STEP_NUM_TASKS": str(count),
        "SLURM_NTASKS_PER_NODE": str(count),
        "SLURM_NNODES": "1",
        "SLURM_NODEID": "0",
        "SLURM_PROCID": str(number),
        "SLURM_LOCALID": str(number),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def main(folder: str, epochs: str, pause: str) -> None:
    """A rank of torchrun: notes where it began and every step, so that somebody can kill it."""
    import oodscope.training.loop.lockstep as lockstep

    lockstep.CHECKPOINT_SECONDS, lockstep.SAVING_SHARE = 0.05, float("inf")
    torch.set_num_threads(1)
    number, started = os.environ["RANK"], os.environ["TORCHELASTIC_RESTART_COUNT"]
    diary = Path(folder) / "diary" / f"{started}-{number}.txt"
    diary.parent.mkdir(parents=True, exist_ok=True)
    diary.write_text(json.dumps({"pid": os.getpid()}) + "\n")

    def note(done: int) -> None:
        with diary.open("a") as stream:
            stream.write(f"{done}\n")
        time.sleep(float(pause))

    train_shared(Path(folder) / "training", "dropout", after=note, epochs=int(epochs))


if __name__ == "__main__":
    main(*sys.argv[1:])
