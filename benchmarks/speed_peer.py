"""The race by pytorch-ood: seven detectors, each image decoded once by torch's loader and its outputs shared."""

import os
import time
from pathlib import Path
from typing import Any


def run_seven(manifest: Path, model: Any, device: str, batch: int) -> dict[str, Any]:
    """Seconds from opened lists to an AUROC per detector and set; ``skipped`` where the library is not installed."""
    try:
        from pytorch_ood import detector as peers
        from pytorch_ood.metrics import OODMetrics
    except ImportError as error:
        return {"skipped": f"pytorch-ood is not installed ({error})"}
    import torch

    import oodscope as oods

    bench = oods.load_benchmark(manifest)
    forwards = 0
    model.eval()
    head = model.fc
    seen: list[Any] = []
    hook = head.register_forward_pre_hook(lambda _, given: seen.append(given[0].detach()))

    def outputs(images: Any) -> tuple[Any, Any]:
        nonlocal forwards
        seen.clear()
        with torch.no_grad():
            logits = model(images)
        forwards += len(images)
        return logits, seen[-1]

    started = time.perf_counter()
    loader = _loader(bench.id_train, bench.transform, batch)
    parts = [(outputs(images.to(device))[1].cpu(), labels) for images, labels in loader]
    features, labels = torch.cat([part for part, _ in parts]), torch.cat([part for _, part in parts])
    count = min(50, len(labels) - 1)
    by_features = {
        "mds": peers.Mahalanobis(None).fit_features(features.to(device), labels.to(device)),
        "knn": peers.KNN(None, k=count).fit_features(features, labels),
        "vim": peers.ViM(None, d=256, w=head.weight.detach(), b=head.bias.detach()).fit_features(features, labels),
    }
    by_logits = {"msp": peers.MaxSoftmax(None), "mls": peers.MaxLogit(None), "ebo": peers.EnergyBased(None)}
    odin = peers.ODIN(model, norm_std=list(bench.transform.std))

    def scores(images: Any) -> dict[str, Any]:
        nonlocal forwards
        found: dict[str, list[Any]] = {}
        for pixels, _ in _loader(images, bench.transform, batch):
            pixels = pixels.to(device)
            logits, inner = outputs(pixels)
            made = {name: each.predict_logits(logits) for name, each in by_logits.items()}
            made |= {
                name: each.predict_features(inner.cpu() if name != "mds" else inner)
                for name, each in by_features.items()
            }
            made["odin"] = odin.predict(pixels)
            forwards += 2 * len(pixels)
            for name, values in made.items():
                found.setdefault(name, []).append(values.detach().cpu())
        return {name: torch.cat(values) for name, values in found.items()}

    known = scores(bench.id_test)
    auroc: dict[str, dict[str, float]] = {}
    for images in (*bench.near, *bench.far):
        for name, values in scores(images).items():
            measured = OODMetrics()
            measured.update(known[name].float(), torch.zeros(len(known[name])))
            measured.update(values.float(), -torch.ones(len(values)))
            auroc.setdefault(name, {})[images.name] = float(measured.compute()["AUROC"])
    hook.remove()
    return {"seconds": time.perf_counter() - started, "forwards": forwards, "auroc": auroc}


def _loader(images: Any, transform: Any, batch: int) -> Any:
    """What its users write: a dataset over files with Pillow, and torch's loader with one process per core."""
    import torch
    from PIL import Image
    from torchvision import transforms

    prepare = transforms.Compose(
        [
            transforms.Resize(transform.resize or transform.size),
            transforms.CenterCrop(transform.size),
            transforms.ToTensor(),
            transforms.Normalize(transform.mean, transform.std),
        ]
    )
    paths = [images.source.encoded(int(row)) for row in images.rows]

    class Files(torch.utils.data.Dataset[Any]):
        def __len__(self) -> int:
            return len(paths)

        def __getitem__(self, row: int) -> tuple[Any, int]:
            with Image.open(paths[row]) as picture:
                return prepare(picture.convert("RGB")), max(0, int(images.labels[row]))

    workers = len(os.sched_getaffinity(0))
    return torch.utils.data.DataLoader(
        Files(), batch_size=batch, num_workers=workers, pin_memory=torch.cuda.is_available()
    )
