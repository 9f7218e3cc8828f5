"""A Slurm that is not there: ``sbatch`` runs an array on this machine, preempts tasks, and runs those again."""

import os

SBATCH = """#!/usr/bin/env python3
# Three tasks of an array at a time. Those named in PREEMPTED get SIGTERM once: AFTER seconds after their start, or,
# where AFTER is not given, when some unit of the plan runs. A task that asks to be requeued is run again.
import os, pathlib, re, subprocess, sys, time
script = pathlib.Path(sys.argv[-1])
tasks = re.search(r"--array=0-(\\d+)", script.read_text())
waiting = list(range(int(tasks[1]) + 1)) if tasks else [None]
log, after, running = pathlib.Path(os.environ["SIMULATED_SLURM"]), os.environ.get("AFTER"), []
preempted = set(filter(None, os.environ.get("PREEMPTED", "").split(","))) if tasks else set()
while waiting or running:
    while waiting and len(running) < 3:
        task = waiting.pop(0)
        env = dict(os.environ, SLURM_ARRAY_JOB_ID="7", **({} if task is None else {"SLURM_ARRAY_TASK_ID": str(task)}))
        process = subprocess.Popen(["bash", str(script)], env=env, stdout=subprocess.DEVNULL, stderr=sys.stderr)
        running.append((task, process, time.monotonic()))
    for task, process, begun in list(running):
        if str(task) in preempted and process.poll() is None:
            at_work = bool(list(script.parent.glob("running/*/*.json")))
            if (at_work if after is None else time.monotonic() - begun >= float(after)):
                preempted.discard(str(task))
                process.terminate()
        if process.poll() is not None:
            running.remove((task, process, begun))
            log.open("a").write(f"{task} {process.returncode}\\n")
            if process.returncode == 143:
                waiting.append(task)
    time.sleep(0.05)
print(7)
"""


def install(folder, preempted=(), after=None):
    """Write ``sbatch`` and ``scontrol``; the variables of the environment that put them first on the path.

    Parameters
    ----------
    preempted : numbers of tasks that are told to end once.
    after : seconds after their start; by default when some unit of the plan runs.
    """
    tools = folder / "bin"
    tools.mkdir(parents=True)
    for name, text in {"sbatch": SBATCH, "scontrol": "#!/bin/sh\nexit 0\n"}.items():
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    variables = {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "SIMULATED_SLURM": str(folder / "slurm.txt")}
    variables["PREEMPTED"] = ",".join(map(str, preempted))
    return variables if after is None else {**variables, "AFTER": str(after)}


def ended(folder):
    """Task and exit status of every start, in the order of their ends; the last job has no task."""
    return [tuple(line.split()) for line in (folder / "slurm.txt").read_text().splitlines()]
