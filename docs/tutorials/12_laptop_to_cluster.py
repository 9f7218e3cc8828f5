"""
From a laptop to many machines
==============================

What is computed is kept by content; several processes share one store, and the digits do not depend on who did the
work.
"""

import tempfile
import time

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
