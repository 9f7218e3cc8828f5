"""
From a laptop to many machines
==============================

What is computed is kept by content; several processes share one store, and the digits do not depend on who did the
work.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import oodscope as oods

bench = oods.load_benchmark("glyphs", images_per_class=40)
network, _ = oods.create_model("small_cnn", num_classes=len(bench.class_names))
clf = oods.Classifier(network, transform=bench.transform, device="cpu")
store = oods.ActivationStore(tempfile.mkdtemp())

# %%
# The first evaluation extracts activations; the second finds them. A killed one goes on where it stopped.
for attempt in ("cold", "warm"):
    start = time.perf_counter()
    result = oods.evaluate(clf, bench, ["msp", "knn"], store=store)
    print(attempt, f"{time.perf_counter() - start:.1f} s, {result.record.forward_images} images through the network")

# %%
# A store is a folder: on a shared disk one person extracts and others read, without locks. Shards are published
# whole, and the first writer wins.
print(sum(1 for _ in store.root.rglob("shard-*")), "shards")

# %%
# Work for several processes is divided into units. ``oodscope plan`` writes them down, ``oodscope work`` does them in
# as many processes and on as many machines as you start, and ``oodscope run`` makes the result. Here two workers take
# their shares one after the other.
job = Path(tempfile.mkdtemp()) / "job.yaml"
job.write_text(
    """
benchmark: glyphs
images_per_class: 10
detectors: [msp, knn]
device: cpu
model: {architecture: small_cnn, train: {epochs: 1}}
output: %s
"""
    % (job.parent / "runs")
)
plan = str(job.parent / "plan")
for command in (["plan", str(job), "-o", plan, "--workers", "2"], ["work", plan, "--share", "0/2"], ["status", plan]):
    done = subprocess.run(
        [sys.executable, "-m", "oodscope", *command, "-q"], capture_output=True, text=True, check=True
    )
    print(done.stdout)
print(oods.run(plan).table())
