"""Slurm: an array of workers with static shares, and a last job that joins. Requeueing is Slurm's."""

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from oodscope.base.errors import OodscopeError, UsageError
from oodscope.base.files import write_text
from oodscope.execution.launch.launcher import Launcher
from oodscope.execution.plan import WorkPlan
from oodscope.execution.progress import SILENT, Progress

WORKERS = 8
"""Array tasks, unless somebody says how many."""

_OPTION = re.compile(r"[a-z][a-z0-9-]*")
_VALUE = re.compile(r"[A-Za-z0-9_.,:/@%+=\[\]-]+")
_OURS = {"array", "job-name", "output", "error", "parsable", "dependency", "requeue", "signal", "wrap", "open-mode"}


def sbatch_options(given: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Options of sbatch from ``KEY=VALUE``; what could be anything else than an option is refused."""
    options = []
    for text in given:
        key, sign, value = text.partition("=")
        if not sign or not _OPTION.fullmatch(key) or not _VALUE.fullmatch(value):
            raise UsageError(f"--slurm {text}: write KEY=VALUE as sbatch has it, such as partition=gpu or time=2:00:00")
        if key in _OURS:
            raise UsageError(f"--slurm {key}: is set by oodscope; leave it out")
        options.append((key, value))
    return tuple(options)


@dataclass(frozen=True)
class SlurmLauncher(Launcher):
    """Writes ``array.sbatch`` and ``join.sbatch`` into the plan's folder and submits both.

    The only command of an array task is ``oodscope work PLAN --share $SLURM_ARRAY_TASK_ID/N``. A task that is preempted
    is told by SIGTERM, ends, and is requeued; what it had published stays.

    Parameters
    ----------
    options : of sbatch, beside those that are ours.
    """

    options: tuple[tuple[str, str], ...] = ()

    @property
    def waits(self) -> bool:
        return False

    def count(self) -> int:
        return self.workers or WORKERS

    def scripts(self, plan: WorkPlan) -> tuple[Path, Path]:
        """The two scripts, written."""
        folder = plan.local_folder().absolute()
        (folder / "logs").mkdir(parents=True, exist_ok=True)
        known = {
            "name": f"oodscope-{plan.key}",
            "last": str(self.count() - 1),
            "count": str(self.count()),
            "options": "".join(f"#SBATCH --{key}={value}\n" for key, value in self.options),
            "plan": shlex.quote(str(folder)),
            "logs": str(folder / "logs"),
            "python": shlex.quote(sys.executable),
            "cwd": shlex.quote(str(Path.cwd())),
        }
        if re.search(r"\s", known["logs"]):
            raise OodscopeError(f"{folder}: sbatch takes no spaces in the folder of its logs; choose another folder")
        made = []
        for name in ("array", "join"):
            template = (files("oodscope.execution.launch") / "templates" / f"{name}.sbatch").read_text(encoding="utf-8")
            text = re.sub(r"@(\w+)@", lambda found: known[found[1]], template)
            write_text(folder / f"{name}.sbatch", text)
            made.append(folder / f"{name}.sbatch")
        return made[0], made[1]

    def run(self, plan: WorkPlan, progress: Progress = SILENT) -> None:
        array, join = self.scripts(plan)
        if shutil.which("sbatch") is None:
            raise OodscopeError(f"there is no sbatch here; submit it where there is one: sbatch {array}")
        number = _submitted("sbatch", "--parsable", str(array))
        # afterany: joining says itself what is missing, and an array task that was lost may not have been needed
        _submitted("sbatch", "--parsable", f"--dependency=afterany:{number}", str(join))


def _submitted(*command: str) -> str:
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    number = answer.stdout.strip().partition(";")[0]
    if answer.returncode or not number.isdigit():
        said = (answer.stderr or answer.stdout).strip().splitlines() or ["no message"]
        raise OodscopeError(f"sbatch refused {command[-1]}: {said[0]}")
    return number
