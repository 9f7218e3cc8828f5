"""Launcher: hands the units of a plan to workers, and comes back when none is left that can be done."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from oodscope.base.errors import OodscopeError
from oodscope.execution.plan import WorkPlan
from oodscope.execution.progress import SILENT, Progress


@dataclass(frozen=True)
class Launcher(ABC):
    """Somebody who runs plans.

    Parameters
    ----------
    workers : how many at once; ``None`` is one for each GPU, or one for each core that a worker's threads leave.
    """

    workers: int | None = None

    @abstractmethod
    def run(self, plan: WorkPlan, progress: Progress = SILENT) -> None:
        """Do the plan; an error where a unit failed or could not be done, naming the first."""

    def count(self) -> int:
        """How many workers there will be, as far as is known before."""
        return self.workers or 1

    @property
    def waits(self) -> bool:
        """Whether ``run`` comes back with the work done; a queue takes it and answers at once."""
        return True


def refuse_unfinished(plan: WorkPlan) -> None:
    """One line that names what failed, if anything did."""
    status = plan.status()
    if status.finished:
        return
    told = f"see: oodscope status {plan.folder}"
    if status.failed:
        name, reason = next(iter(status.failed.items()))
        label = next(str(unit) for unit in plan.units if unit.name == name)
        others = f" and {len(status.failed) - 1} more" if len(status.failed) > 1 else ""
        raise OodscopeError(f"{label}: {reason} ({len(status.failed)} of {status.total} units failed{others}; {told})")
    left = status.total - len(status.done)
    raise OodscopeError(f"{left} of {status.total} units are not done, because the workers ended; {told}")
