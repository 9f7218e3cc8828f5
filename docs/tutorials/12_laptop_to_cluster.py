"""
From a laptop to eight GPUs to a cluster
========================================

One job file and three commands::

    oodscope run job.yaml                                           # a laptop
    oodscope run job.yaml --workers 8                               # a machine with eight GPUs
    oodscope run job.yaml --on slurm --workers 64 \\
        --slurm partition=gpu,time=2:00:00,gres=gpu:1               # a cluster; or --on ray

What is computed is kept by content, and the digits do not depend on who did the work: this page runs the first two
commands and compares them.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import oodscope as oods

folder = Path(tempfile.mkdtemp())
job = folder / "job.yaml"
declared = {
    "benchmark": "glyphs",
    "images_per_class": 10,
    "detectors": ["msp", "knn"],
    "device": "cpu",
    "model": {"architecture": "small_cnn", "train": {"epochs": 1}},
}
job.write_text(json.dumps(declared))

# %%
# A laptop: one process does everything. Killed, it goes on where it stopped.
alone = oods.run(job, output=folder / "laptop")
print(alone.table())

# %%
# A machine with several GPUs: ``--workers 8``, here two processes without a GPU. Every score is the same, to the bit.
together = oods.run(job, output=folder / "workers", workers=2)
print(alone.scores.frame.equals(together.scores.frame))

# %%
# A cluster: Ray and Slurm start the same workers on other machines. What they do is written down first, as units of
# work, and you may start them yourself, by ssh or whatever you have: ``plan`` writes the units, ``work`` does them in
# as many processes as you start, ``status`` shows how far they are, and ``run`` makes the result.
plan = str(folder / "plan")
for words in (
    ["plan", str(job), "-o", plan, "--workers", "2"],
    ["work", plan, "--share", "0/2"],
    ["status", plan],
):
    done = subprocess.run([sys.executable, "-m", "oodscope", *words, "-q"], capture_output=True, text=True, check=True)
    print(done.stdout)
by_hand = oods.run(plan)
print(alone.scores.frame.equals(by_hand.scores.frame))

# %%
# ``--on slurm`` submits this script for such a plan, and a last job that makes the result. A task that is preempted is
# told by SIGTERM, ends and asks to be run again; what it had finished stays. With Ray (``--on ray``, extra ``ray``)
# there is no script: workers are actors of the cluster that ``RAY_ADDRESS`` names, or of one that is started here.
from oodscope.execution.launch.slurm import SlurmLauncher, sbatch_options
from oodscope.execution.plan import WorkPlan

array, join = SlurmLauncher(64, sbatch_options(["partition=gpu", "gres=gpu:1"])).scripts(WorkPlan(plan))
print(array.read_text())

# %%
# All machines see one output folder and one cache, or an object store (``OODSCOPE_ACTIVATIONS=s3://lab/activations``).
# There are no locks: files are published whole, and the first writer wins. ``oodscope cache`` shows what is kept.
done = subprocess.run(
    [sys.executable, "-m", "oodscope", "cache", "list", "-q"], capture_output=True, text=True, check=True
)
print(done.stdout)

# %%
# One large training takes several GPUs at once::
#
#     torchrun --nproc-per-node 8 --max-restarts 3 -m oodscope train --benchmark imagenet200 --model timm:resnet50
#
# See :doc:`/howto/machines` for what to choose, and :doc:`/results/scale` for what was measured.
