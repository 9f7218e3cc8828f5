"""Ranks: processes that share one training, as torchrun or srun started them."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from oodscope.base.errors import UsageError


@dataclass(frozen=True)
class Ranks:
    """Which of how many processes this is.

    Parameters
    ----------
    number, count : of all; number 0 writes what all have computed.
    local, per_node : of those on this machine.

    Examples
    --------
    >>> Ranks(1, 3).share(8)
    slice(3, 6, None)
    """

    number: int = 0
    count: int = 1
    local: int = 0
    per_node: int = 1

    @classmethod
    def here(cls, environment: Mapping[str, str] | None = None) -> "Ranks":
        """As torchrun or srun tells it by variables of the environment; alone where neither started this process."""
        known = os.environ if environment is None else environment
        if "TORCHELASTIC_RUN_ID" in known:
            names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
        # the batch script of a job has SLURM_NTASKS too: only a step was started once for each task
        elif "SLURM_STEP_NUM_TASKS" in known and "SLURM_NTASKS_PER_NODE" in known:
            names = ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE")
        else:
            return cls()
        try:
            number, count, local, per_node = (int(known[name]) for name in names)
        except (KeyError, ValueError) as error:
            raise UsageError(f"the variables {', '.join(names)} do not say which process this is ({error})") from error
        return cls(number, count, local, per_node)

    @property
    def alone(self) -> bool:
        return self.count == 1

    @property
    def first(self) -> bool:
        return self.number == 0

    @property
    def nodes(self) -> int:
        return -(-self.count // self.per_node)

    def share(self, length: int, number: int | None = None) -> slice:
        """The rows of a batch that a rank works on, by default this one: consecutive, nearly equally many for all."""
        place = self.number if number is None else number
        least, more = divmod(length, self.count)
        start = place * least + min(place, more)
        return slice(start, start + least + (place < more))
