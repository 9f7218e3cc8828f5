"""Claims about divided work that are not about digits or speed: studies, stores, ranks, imports, float16."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from tests.jobs import costs
from tests.jobs.project import study as study_file
from tests.realdata.packs import CIFAR10, pack, resnet18

from scale_numbers import HERE, Figures, environment, oodscope

MODELS = 20


def study(folder: Path) -> Figures:
    """Twenty networks with two workers, each evaluated once; then one that cannot be built among them."""
    import safetensors.torch
    import torch

    import oodscope as oods

    folder.mkdir(parents=True, exist_ok=True)
    classes = len(oods.load_benchmark("glyphs", images_per_class=1).class_names)
    models = []
    for number in range(MODELS):
        torch.manual_seed(number)
        network, _ = oods.create_model("small_cnn", num_classes=classes)
        file = folder / f"net-{number}.safetensors"
        safetensors.torch.save_file(network.state_dict(), file)
        models.append({"architecture": "small_cnn", "name": f"net {number}", "weights": str(file)})
    outcomes: Figures = {}
    for name in ("all", "one fails"):
        if name == "one fails":
            (folder / "net-7.safetensors").write_bytes(b"no weights")
        place = folder / name.replace(" ", "-")
        # networks are random: of few images none may be classified correctly, and there is no threshold then
        path = study_file(place, models, images_per_class=40)
        process = oodscope(place, "run", str(path), "--workers", "2", wait=False)
        _, errors = process.communicate()
        runs = len(list((place / "out").glob("glyphs-*/run.json")))
        lines = [line.replace(str(folder), "...") for line in errors.strip().splitlines()]
        outcomes[name] = {"status": process.returncode, "evaluations": runs, "said": lines}
    return {"models": MODELS, **outcomes}


def tests_of(*words: str) -> Figures:
    """How a choice of tests ended, and their processor time."""
    started = os.times()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:xdist", "-o", "addopts=", "--no-header", "--tb=no", *words],
        cwd=HERE,
        env={**os.environ, "OODSCOPE_TEST_TIER": "test", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    ended = os.times()
    seconds = ended.children_user + ended.children_system - started.children_user - started.children_system
    said = done.stdout.strip().splitlines()[-1].strip("= ") if done.stdout.strip() else "no answer"
    return {
        "status": done.returncode,
        "said": re.sub(r", \d+ (deselected|warnings?)", "", said.partition(" in ")[0]),
        "seconds": seconds,
        "command": f"pytest {' '.join(f'{word!r}' if ' ' in word or not word else word for word in words)}",
    }


TESTS = {
    "races on a disk": ("-m", "soak", "tests/base/test_remote_place.py", "-k", "racing_processes"),
    "races on S3": ("-m", "soak", "tests/base/test_remote_place.py", "-k", "racing_writers"),
    "databases": ("-m", "", "tests/results/test_result_store.py", "-k", "many_processes and 64"),
    "network file system": ("-m", "", "tests/base/test_network_file_system.py"),
    "mixed devices": ("-m", "", "tests/runs/evaluation/test_mixed_devices.py"),
    "plans": ("-m", "", "tests/execution/test_plan_machine.py"),
    "shares and kills": ("-m", "", "tests/execution/test_work.py"),
}
"""Claims that tests make: eight racing writers, 64 processes on one database, devices that are told, random plans."""


def stores(folder: Path, chosen: list[str], known: Figures) -> Iterator[Figures]:
    """How the tests of each claim ended, once more after each."""
    for name in chosen or TESTS:
        known = {**known, name: tests_of(*TESTS[name])}
        yield known


def ranks(folder: Path) -> Figures:
    """Two ranks against one process: without batch norm by weights, with synchronised batch norm by accuracy."""
    found: Figures = {"accuracy": {}}
    asked = ["train", "--benchmark", "glyphs", "--images-per-class", "300", "--model", "small_cnn", "--device", "cpu"]
    asked += ["--set", "epochs=12", "--set", "batch_size=64", "--seeds", "0,1,2", "--json", "-q"]
    for count in (1, 2):
        words = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--max-restarts", "3"]
        words += ["--master-port", str(20_000 + os.getpid() % 20_000), "-m", "oodscope"]
        place = folder / str(count)
        place.mkdir(parents=True)
        started = [sys.executable, "-m", "oodscope"] if count == 1 else words
        done = subprocess.run(
            [*started, *asked, "-o", str(place / "out")],
            env=environment(folder) | {"OODSCOPE_CACHE": str(place / "cache")},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(done.stderr)
        found["accuracy"][str(count)] = accuracies(place / "out")
    found["tests"] = tests_of("-m", "", "tests/training/test_ranks.py")
    return found


def accuracies(output: Path) -> list[list[int]]:
    """Correct test images and all of them, of each seed's network."""
    import oodscope as oods

    (training,) = [run for run in oods.open_runs(output) if run.kind == "training"]
    return [[int(each.correct or 0), each.n_test] for each in training.networks]


HEAVY = ("torch", "ray", "fsspec", "s3fs", "boto3", "botocore", "gcsfs")


def imports(folder: Path) -> Figures:
    """What ``import oodscope`` costs and brings, and what ``--on ray`` says without Ray."""
    folder.mkdir(parents=True, exist_ok=True)
    seconds = costs.cheapest("-c", "import oodscope", times=15)
    bare = costs.cheapest("-c", "pass", times=15)
    found = costs.script(f"import sys, oodscope; print([name for name in {HEAVY} if name in sys.modules])")
    (folder / "ray.py").write_text("raise ImportError('no Ray here')\n")
    path = study_file(folder, [{"architecture": "small_cnn", "train": {"epochs": 1}}])
    process = oodscope(folder, "run", str(path), "--on", "ray", wait=False)
    _, errors = process.communicate()
    return {
        "seconds": seconds,
        "bare": bare,
        "heavy": found.stdout.strip(),
        "status": process.returncode,
        "said": errors.strip().splitlines(),
    }


TRAIN, TEST = 1_000, 400


def float16(folder: Path) -> Figures:
    """Every detector on real images from a float32 store, from a float16 store, and with logits from the head."""
    import torch

    import oodscope as oods
    from oodscope.activations.store.store import ActivationStore

    torch.set_num_threads(1)
    os.environ.update({"OODSCOPE_CACHE": str(folder / "cache"), "OODSCOPE_WORKERS": "0"})
    data = Path(os.environ["OODSCOPE_DATA"]).resolve()
    clf = resnet18(data, "cifar10", CIFAR10)
    draws = np.random.default_rng(0)

    def some(images: "oods.ImageSet", count: int, name: str) -> "oods.ImageSet":
        return images.take(np.sort(draws.permutation(len(images))[:count]), name)

    inside = pack(data, "cifar10_test")
    order = draws.permutation(len(inside))
    bench = oods.Benchmark(
        name="cifar10",
        version="some",
        id_train=inside.take(np.sort(order[:TRAIN]), "id_train"),
        id_test=inside.take(np.sort(order[TRAIN : TRAIN + TEST]), "id_test"),
        near=(some(pack(data, "cifar100_test"), TEST, "cifar100"),),
        far=(some(pack(data, "svhn_test_10k"), TEST, "svhn"),),
    )
    kinds = {"float32": {}, "float16": {"storage": "float16"}}
    frames, times = {}, {}
    for name, how in kinds.items():
        started = time.process_time()
        store = ActivationStore(folder / name, **how)  # type: ignore[arg-type]
        result = oods.evaluate(clf, bench, "all", store=store, intervals="none")
        rows = result.measurements.to_dataframe()
        rows = rows[rows["metric"] == "auroc"]
        keys = [key for key in ("detector", "ood_set", "group", "protocol") if key in rows]
        frames[name], times[name] = rows.set_index(keys)["value"], time.process_time() - started
        print(f"float16: {name}: {len(frames[name])} values in {times[name]:.0f} s", flush=True)
    differences = 100 * (frames["float16"] - frames["float32"]).abs()
    per_detector = differences.groupby("detector").max().sort_values(ascending=False)
    full = ActivationStore(folder / "float32").extract(clf, bench.id_test).logits
    derived = ActivationStore(folder / "derived", logits="from_head").extract(clf, bench.id_test).logits
    spread = float((torch.as_tensor(np.asarray(derived)) - torch.as_tensor(np.asarray(full))).abs().max())
    sizes = {name: sum(path.stat().st_size for path in (folder / name).rglob("*.safetensors")) for name in kinds}
    return {
        "detectors": len(per_detector),
        "points": {str(name): float(value) for name, value in per_detector.items()},
        "logits": spread / float(torch.as_tensor(np.asarray(full)).std()),
        "images": {"id_train": TRAIN, "each test set": TEST},
        "bytes": sizes,
    }
