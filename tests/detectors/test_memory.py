"""Fitting and scoring from a memory map larger than the memory allowed."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

ROWS, WIDTH, CLASSES = 100_000, 512, 10
CAP = 128 * 2**20
STREAMING = (
    "msp", "mls", "ebo", "knn", "mds", "vim", "react", "ash", "cadref", "dice", "entropy", "fdbd", "gen", "gradnorm",
    "klm", "mahalanobis_pp", "maxcosine", "nci", "nnguide", "openmax", "residual", "rmds", "scale", "she", "vra",
)  # fmt: skip
"""All but those that keep a sample of the training rows (gmm, kpca, nac, opengan, weiper, relation's bank)."""

SCRIPT = """
    import resource, sys
    import numpy as np, torch, oodscope as oods

    features = np.load(sys.argv[1], mmap_mode="r")
    rows, width, classes, cap = map(int, sys.argv[2:6])
    names = sys.argv[6].split(",")
    torch.set_num_threads(1)
    rng = np.random.default_rng(1)
    weight = rng.standard_normal((classes, width), dtype=np.float32)
    logits = rng.standard_normal((rows, classes), dtype=np.float32)
    labels = np.arange(rows) % classes
    head = dict(weight=weight, bias=np.zeros(classes))

    def some(count):
        return oods.Activations(logits=logits[:count], features=features[:count], labels=labels[:count], **head)

    def judge(name, train):
        # a bank must hold its rows: KNN remembers a hundredth of them, as its paper does on ImageNet
        params = {"bank_fraction": 0.01, "k": 10} if name == "knn" else {}
        oods.create_detector(name, **params).fit(train, some(500)).score(train)

    for name in names:  # libraries take their working memory before it is counted
        judge(name, some(3000))
    used = int(next(line for line in open("/proc/self/status") if line.startswith("VmData")).split()[1]) * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (used + cap, used + cap))
    try:
        np.ones((rows, width), dtype=np.float32)
    except MemoryError:
        print("the cap holds")
    for name in names:
        judge(name, some(rows))
        print("judged", name)
"""


@pytest.mark.slow
def test_fits_under_a_cap_below_the_size_of_the_training_activations(tmp_path):
    """The kernel enforces it: beyond the cap, allocations fail. A file that is mapped does not count."""
    features = np.lib.format.open_memmap(tmp_path / "f.npy", mode="w+", dtype=np.float32, shape=(ROWS, WIDTH))
    rng = np.random.default_rng(0)
    for start in range(0, ROWS, 10_000):
        features[start : start + 10_000] = np.abs(rng.standard_normal((10_000, WIDTH), dtype=np.float32))
    features.flush()
    assert features.nbytes > CAP
    arguments = [str(tmp_path / "f.npy"), *map(str, (ROWS, WIDTH, CLASSES, CAP)), ",".join(STREAMING)]
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT), *arguments], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines() == ["the cap holds", *(f"judged {name}" for name in STREAMING)]
