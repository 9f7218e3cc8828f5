r"""Two detectors that are not classifiers: an autoencoder's error and a flow's likelihood, trained on CIFAR-10 images.

    OODSCOPE_DATA=path/to/packs python benchmarks/density_models.py [--train cifar10_train.npz] --output FOLDER

Both are known to fail on SVHN: its digits are smoother than CIFAR-10's photographs, so they are reconstructed better
and get a higher likelihood (Nalisnick et al., "Do Deep Generative Models Know What They Don't Know?", ICLR 2019).
Prints bits per dimension of CIFAR-10 test images, AUROC against SVHN, and the speed of scoring. Without --train, the
first half of the CIFAR-10 test images is learnt from and the other half judged on.
"""

import argparse
import json
import math
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn.functional import conv2d, pixel_unshuffle, softplus

from oodscope.deploy.function_scorer import FunctionScorer
from oodscope.metrics.ranking.ranking import Ranking
from oodscope.models.classifier.network import choose_device
from openood_cifar import pack

PACKS = ("cifar10_test", "svhn_test_10k")
LEVELS = 256
RATE = 1e-3


class Autoencoder(nn.Module):
    """Four strided convolutions to a short code, and back; pixels in [0, 1]."""

    def __init__(self, channels: int = 3, side: int = 32, width: int = 64, code: int = 64) -> None:
        super().__init__()
        self.settings = {"channels": channels, "side": side, "width": width, "code": code}
        counts, small = (width, 2 * width, 4 * width), side // 8

        def down(a: int, b: int) -> nn.Sequential:
            return nn.Sequential(nn.Conv2d(a, b, 4, 2, 1, bias=False), nn.BatchNorm2d(b), nn.SiLU())

        def up(a: int, b: int) -> nn.Sequential:
            return nn.Sequential(nn.ConvTranspose2d(a, b, 4, 2, 1, bias=False), nn.BatchNorm2d(b), nn.SiLU())

        self.encoder = nn.Sequential(
            down(channels, counts[0]),
            down(counts[0], counts[1]),
            down(counts[1], counts[2]),
            nn.Flatten(),
            nn.Linear(counts[2] * small**2, code),
        )
        self.decoder = nn.Sequential(
            nn.Linear(code, counts[2] * small**2),
            nn.Unflatten(1, (counts[2], small, small)),
            up(counts[2], counts[1]),
            up(counts[1], counts[0]),
            nn.ConvTranspose2d(counts[0], channels, 4, 2, 1),
        )

    def forward(self, images: Tensor) -> Tensor:
        """Squared error per image, averaged over pixels."""
        images = images.contiguous(memory_format=torch.channels_last)
        drawn = self.decoder(self.encoder(images)).float()
        return (drawn - images).square().mean((1, 2, 3))


class Coupling(nn.Module):
    r"""One step of the flow: scale and shift channels, mix them, and move one half by an affine map of the other.

    The mixing matrix is :math:`P L (U + \mathrm{diag}\, s)` with :math:`P` fixed, as in Glow: its log-determinant is
    :math:`\sum \log |s|`, without a decomposition. The affine map's scale is kept in (0, 1) and starts at .88.
    """

    sign: Tensor
    rotation: Tensor
    lower: Tensor

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        self.kept = channels // 2
        self.shift = nn.Parameter(torch.zeros(channels, 1, 1))
        self.log_scale = nn.Parameter(torch.zeros(channels, 1, 1))
        p, low, up = torch.linalg.lu(torch.linalg.qr(torch.randn(channels, channels)).Q)
        self.register_buffer("rotation", p)
        self.register_buffer("lower", torch.tril(torch.ones(channels, channels), -1))
        self.register_buffer("sign", up.diagonal().sign())
        self.low, self.up = nn.Parameter(low), nn.Parameter(up)
        self.log_diagonal = nn.Parameter(up.diagonal().abs().log())
        moved = channels - self.kept
        self.net = nn.Sequential(
            nn.Conv2d(self.kept, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, width, 1),
            nn.ReLU(),
            nn.Conv2d(width, 2 * moved, 3, padding=1),
        )
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Moved values and the log-determinant of each image."""
        area = values.shape[2] * values.shape[3]
        values = (values + self.shift) * self.log_scale.exp()
        low = self.low * self.lower + torch.eye(len(self.lower), device=values.device)
        up = self.up * self.lower.T + torch.diag(self.sign * self.log_diagonal.exp())
        with torch.autocast(values.device.type, enabled=False):
            values = conv2d(values, (self.rotation @ low @ up)[:, :, None, None])
        shift, raw = self.net(values[:, : self.kept]).float().chunk(2, 1)
        moved = (values[:, self.kept :] + shift) * torch.sigmoid(raw + 2.0)
        gained = -softplus(-raw - 2.0).sum((1, 2, 3)) + area * (self.log_scale.sum() + self.log_diagonal.sum())
        return torch.cat([values[:, : self.kept], moved], 1), gained

    @torch.no_grad()
    def settle(self, values: Tensor) -> None:
        """Choose shift and scale such that these values leave the first line with mean 0 and deviation 1."""
        self.shift.copy_(-values.mean((0, 2, 3), keepdim=True)[0])
        self.log_scale.copy_(-values.std((0, 2, 3), keepdim=True)[0].clamp(min=1e-4).log())


class Flow(nn.Module):
    """A multi-scale flow: at each level 2 x 2 pixels become channels, couplings follow, and half of it is set aside.

    What is set aside is Gaussian with mean and deviation read off the half that goes on.
    """

    def __init__(self, channels: int = 3, side: int = 32, couplings: int = 8, width: int = 96, levels: int = 3) -> None:
        super().__init__()
        self.settings = {
            "channels": channels,
            "side": side,
            "couplings": couplings,
            "width": width,
            "levels": levels,
        }
        self.levels, self.priors = nn.ModuleList(), nn.ModuleList()
        for level in range(levels):
            channels *= 4
            self.levels.append(nn.ModuleList(Coupling(channels, width) for _ in range(couplings)))
            if level < levels - 1:
                channels //= 2
                prior = nn.Conv2d(channels, 2 * channels, 3, padding=1)
                nn.init.zeros_(prior.weight)
                nn.init.zeros_(prior.bias)
                self.priors.append(prior)

    def log_density(self, values: Tensor, settle: bool = False) -> Tensor:
        """Of values ``[N, C, H, W]`` in nats; ``settle`` first fits the scales of every coupling to these values."""
        total = values.new_zeros(len(values))
        for level, couplings in enumerate(self.levels):
            values = pixel_unshuffle(values, 2)
            for coupling in couplings:
                if settle:
                    coupling.settle(values)
                values, gained = coupling(values)
                total = total + gained
            if level < len(self.priors):
                values, aside = values.chunk(2, 1)
                mean, log_scale = self.priors[level](values).float().chunk(2, 1)
                total = total + gaussian(aside, mean, log_scale)
        return total + gaussian(values, torch.zeros_like(values), torch.zeros_like(values))

    def forward(self, images: Tensor, settle: bool = False) -> Tensor:
        r"""Bits per dimension of pixels in [0, 1], larger = less likely.

        A pixel of level k lies in the bin [k, k + 1) / 256. The mean over uniform noise in the bins bounds the code
        length of the levels from above, so it can be compared between models; without noise (as in a search, whose
        pixels lie between levels anyway) the density is taken at the centre of the bin.
        """
        return self._bits(images * (LEVELS - 1) + 0.5, settle)

    def noisy(self, images: Tensor, settle: bool = False) -> Tensor:
        """The same with uniform noise in each bin: what is trained, and what is reported."""
        return self._bits(images * (LEVELS - 1) + torch.rand_like(images), settle)

    def _bits(self, levels: Tensor, settle: bool) -> Tensor:
        values = levels / LEVELS - 0.5
        nats = -self.log_density(values, settle) / values[0].numel()
        return nats / math.log(2) + math.log2(LEVELS)


def gaussian(values: Tensor, mean: Tensor, log_scale: Tensor) -> Tensor:
    """Log-density of each image, summed over its numbers."""
    standard = (values - mean) * (-log_scale).exp()
    return (-0.5 * standard.square() - log_scale - 0.5 * math.log(2 * math.pi)).sum((1, 2, 3))


def _descend(
    model: nn.Module,
    loss: Callable[[Tensor], Tensor],
    images: np.ndarray,
    seconds: float,
    device: torch.device,
    batch: int,
    seed: int,
    steps: int | None,
) -> None:
    """Adam with a rate that rises in the first twentieth of the time (or steps) and falls to zero at the end of it."""
    pixels = torch.from_numpy(images).permute(0, 3, 1, 2).contiguous().to(device)
    draws = torch.Generator(device).manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE, betas=(0.9, 0.99))
    started, step, spent, share = time.perf_counter(), 0, 0.0, 0.0
    while share < 1:
        rows = torch.randint(len(pixels), (batch,), generator=draws, device=device)
        flipped = torch.rand(batch, 1, 1, 1, generator=draws, device=device) < 0.5
        shown = pixels[rows].float() / 255
        shown = torch.where(flipped, shown.flip(3), shown)
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(1.0, 20 * share + 1e-3) * (1 + math.cos(math.pi * share)) / 2
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            lost = loss(shown).mean()
        optimizer.zero_grad()
        lost.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 50.0)
        optimizer.step()
        step += 1
        spent = time.perf_counter() - started
        share = spent / seconds if steps is None else step / steps
        if step % 500 == 0:
            print(f"{type(model).__name__}: step {step}, {spent:.0f} s, loss {float(lost):.4f}", flush=True)
    print(f"{type(model).__name__}: {step} steps of {batch} in {spent:.0f} s", flush=True)


def train_autoencoder(
    images: np.ndarray,
    seconds: float,
    device: str | torch.device = "auto",
    *,
    seed: int = 0,
    steps: int | None = None,
    **settings: int,
) -> Autoencoder:
    """An autoencoder of uint8 images ``[N, H, W, C]``, in evaluation mode on the device.

    ``steps`` end it in the place of seconds, if given.
    """
    place = choose_device(device)
    torch.manual_seed(seed)
    model = Autoencoder(images.shape[3], images.shape[1], **settings).to(place).to(memory_format=torch.channels_last)
    _descend(
        model.train(), model, images, seconds, place, batch=256 if place.type == "cuda" else 32, seed=seed, steps=steps
    )
    return model.eval().requires_grad_(False)


def train_flow(
    images: np.ndarray,
    seconds: float,
    device: str | torch.device = "auto",
    *,
    seed: int = 0,
    steps: int | None = None,
    **settings: int,
) -> Flow:
    """A flow of uint8 images ``[N, H, W, C]``, in evaluation mode on the device.

    ``steps`` end it in the place of seconds, if given.
    """
    place = choose_device(device)
    torch.manual_seed(seed)
    model = Flow(images.shape[3], images.shape[1], **settings).to(place)
    first = torch.from_numpy(images[:256]).permute(0, 3, 1, 2).to(place).float() / 255
    with torch.no_grad():
        model.noisy(first, settle=True)
    _descend(
        model, model.noisy, images, seconds, place, batch=256 if place.type == "cuda" else 16, seed=seed, steps=steps
    )
    return model.eval().requires_grad_(False)


def autoencoder_scorer(model: Autoencoder, device: str | torch.device = "cpu") -> FunctionScorer:
    """Reconstruction error as a score."""
    return FunctionScorer(_quick(model, device), device)


def flow_scorer(model: Flow, device: str | torch.device = "cpu") -> FunctionScorer:
    """Negative log-likelihood, in bits per dimension, as a score."""
    return FunctionScorer(_quick(model, device), device)


def _quick(model: nn.Module, device: str | torch.device) -> Callable[[Tensor], Tensor]:
    """The model on the device; on a GPU its convolutions in bf16, for a search asks it millions of times."""
    model = model.to(device)
    if torch.device(device).type != "cuda":
        return model
    return torch.autocast("cuda", torch.bfloat16)(model)


def save_density(model: Autoencoder | Flow, path: Path) -> None:
    """Weights and settings in one safetensors file."""
    tensors = {key: value.detach().cpu().contiguous().clone() for key, value in model.state_dict().items()}
    told = {"kind": type(model).__name__, "settings": model.settings}
    save_file(tensors, path, metadata={"density_model": json.dumps(told)})


def load_density(path: Path) -> Autoencoder | Flow:
    """What ``save_density`` wrote, on the CPU and in evaluation mode."""
    with safe_open(path, framework="pt") as content:
        told = json.loads(content.metadata()["density_model"])
        tensors = {key: content.get_tensor(key) for key in content.keys()}  # noqa: SIM118  # not a dict
    model = {"Autoencoder": Autoencoder, "Flow": Flow}[told["kind"]](**told["settings"])
    model.load_state_dict(tensors)
    return model.eval().requires_grad_(False)


def _scores(scorer: FunctionScorer, images: np.ndarray, batch: int = 500) -> np.ndarray:
    pixels = torch.from_numpy(images).permute(0, 3, 1, 2)
    with torch.inference_mode():
        parts = [
            scorer.score_tensor(part.to(scorer.device).float() / 255).double().cpu() for part in pixels.split(batch)
        ]
    return torch.cat(parts).numpy()


def _speed(scorer: FunctionScorer, batch: int) -> float:
    """Images scored per second, in bfloat16 where there is a GPU."""
    images = torch.rand(batch, 3, 32, 32, device=scorer.device)
    kind = scorer.device.type
    with torch.inference_mode(), torch.autocast(kind, torch.bfloat16, enabled=kind == "cuda"):
        float(scorer.score_tensor(images).sum())
        started = time.perf_counter()
        for _ in range(5):
            scores = scorer.score_tensor(images)
        float(scores.sum())
    return 5 * batch / (time.perf_counter() - started)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=Path, help="a pack of CIFAR-10 training images")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=120.0, help="of training, for the flow; the other takes half")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--limit", type=int, help="judge on so many images of each set")
    options = parser.parse_args()
    folder = Path(os.environ["OODSCOPE_DATA"]).resolve()
    test, digits = (np.stack(each.images(np.arange(len(each)))) for each in (pack(folder, n) for n in PACKS))
    if options.train is None:
        train, test = test[:5000], test[5000:]
    else:
        learnt = pack(folder, options.train.stem, options.train.resolve().parent)
        train = np.stack(learnt.images(np.arange(len(learnt))))
    test, digits = test[: options.limit], digits[: options.limit]
    options.output.mkdir(parents=True, exist_ok=True)
    device = choose_device(options.device)
    for model, make in (
        (train_autoencoder(train, options.seconds / 2, device), autoencoder_scorer),
        (train_flow(train, options.seconds, device), flow_scorer),
    ):
        name, scorer = type(model).__name__.lower(), make(model, device)
        save_density(model, options.output / f"{name}.safetensors")
        inside, outside = _scores(scorer, test), _scores(scorer, digits)
        if isinstance(model, Flow):
            noisy = _scores(FunctionScorer(model.noisy, device), test)
            print(f"flow: {noisy.mean():.3f} bits per dimension on {len(test)} CIFAR-10 test images")
        print(f"{name}: mean score {inside.mean():.4f} on CIFAR-10, {outside.mean():.4f} on SVHN")
        print(f"{name}: AUROC {100 * Ranking(inside, outside).auroc:.2f} % against SVHN")
        print(f"{name}: {_speed(scorer, 4096 if device.type == 'cuda' else 64):,.0f} images/s on {device}")


if __name__ == "__main__":
    main()
