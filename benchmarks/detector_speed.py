"""How fast are our detectors beside those of pytorch-ood, on the same cached activations?

    pip install --no-deps pytorch-ood
    python benchmarks/detector_speed.py [--classes 10 1000] [--only NAME ...] [--shared] [--section FILE]

50,000 x 512 training and 30,000 x 512 test activations, made up, in memory. Fit and score are timed for both in
one process in turn, each the best of five (of one, where it takes longer than ten seconds). At 1,000
classes the peer's Mahalanobis detectors, DICE and GradNorm get fewer rows (column "peer's share") and their time is
scaled up, because they take minutes or run out of memory. Each of our detectors gets activations that know nothing yet;
with ``--processor`` the processor's time counts, which other work on the machine disturbs less. With ``--shared`` they
get, as in an evaluation, activations whose checks and moments the run has computed before,
and the peer is not timed. ``--section`` writes what came out into a page, between the lines that mark its place.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytorch_ood.detector as peer
import torch
from torch import Tensor, nn

import oodscope as oods
from oodscope.models.classifier.head import Head

TRAIN, TEST, VAL, WIDTH = 50_000, 30_000, 5_000, 512
SLOW_SECONDS, ROUNDS = 10.0, 5
clock = time.perf_counter


@dataclass
class Data:
    """Training, held-out and test activations of a made-up network."""

    classes: int

    def __post_init__(self) -> None:
        rng = np.random.default_rng(0)
        self.head = nn.Linear(WIDTH, self.classes)
        centres = rng.normal(size=(self.classes, WIDTH)).astype(np.float32)
        with torch.no_grad():
            self.head.weight.copy_(torch.from_numpy(centres * 0.05))
        self.train, self.val, self.test = (self.rows(rng, centres, n) for n in (TRAIN, VAL, TEST))

    def rows(self, rng: np.random.Generator, centres: np.ndarray, count: int) -> oods.Activations:
        labels = np.arange(count) % self.classes
        noise = rng.normal(size=(count, WIDTH)).astype(np.float32)
        features = torch.from_numpy(centres[labels] + noise).relu()
        with torch.no_grad():
            logits = self.head(features)
        head = Head(self.head.weight, self.head.bias)
        return oods.Activations(logits=logits, features=features, labels=labels, head=head)


@dataclass
class Contest:
    """One detector in both libraries: how the peer is made, and what it reads."""

    ours: str
    make: Callable[[Data], object]
    reads: str = "features"
    fits: str | None = "train"
    params: dict[str, object] | None = None
    share: float = 1.0
    """Of the rows that the peer gets at 1,000 classes."""


class HeadOnly(nn.Module):
    def __init__(self, head: nn.Linear) -> None:
        super().__init__()
        self.fc = head

    def forward(self, features: Tensor) -> Tensor:
        return self.fc(features)


def pooled(head: nn.Linear) -> nn.Module:
    """The peer's rectifiers read maps; here they have one pixel."""
    return nn.Sequential(nn.Flatten(), head)


def weights(data: Data) -> tuple[Tensor, Tensor]:
    return data.head.weight.detach(), data.head.bias.detach()


CONTESTS = [
    Contest("msp", lambda d: peer.MaxSoftmax(None), "logits", None),
    Contest("mls", lambda d: peer.MaxLogit(None), "logits", None),
    Contest("ebo", lambda d: peer.EnergyBased(None), "logits", None),
    Contest("entropy", lambda d: peer.Entropy(None), "logits", None),
    Contest("gen", lambda d: peer.GEN(None, gamma=0.1, M=100), "logits", None),
    Contest("temp_scaling", lambda d: peer.TemperatureScaling(None), "logits", "val"),
    Contest("klm", lambda d: peer.KLMatching(None), "logits", "val"),
    Contest("openmax", lambda d: peer.OpenMax(None, tailsize=20, alpha=3), "logits"),
    Contest("knn", lambda d: peer.KNN(None, k=50)),
    Contest("mds", lambda d: peer.Mahalanobis(None), share=0.02),
    Contest("rmds", lambda d: peer.RMD(None), share=0.02),
    Contest("vim", lambda d: peer.ViM(None, 256, *weights(d)), params={"dim": 256}),
    Contest("she", lambda d: peer.SHE(None, d.head)),
    Contest("dice", lambda d: peer.DICE(None, *weights(d), p=0.9), share=0.1),
    Contest("fdbd", lambda d: peer.fDBD(None, d.head)),
    Contest("nci", lambda d: peer.NCI(None, d.head, alpha=1e-4)),
    Contest("nnguide", lambda d: peer.NNGuide(None, d.head, k=10), params={"k": 10, "bank_fraction": 1.0}),
    Contest("react", lambda d: peer.ReAct(None, pooled(d.head), percentile=0.9), "maps", "val"),
    Contest("vra", lambda d: peer.VRA(None, pooled(d.head), 0.1, 0.9), "maps", "val"),
    Contest("ash", lambda d: peer.ASH(None, pooled(d.head), "ash-b", 0.9), "maps", None),
    Contest("scale", lambda d: peer.SCALE(None, pooled(d.head), 0.85), "maps", None),
    Contest("gradnorm", lambda d: peer.GradNorm(HeadOnly(d.head)), "inputs", None, share=0.02),
]


def peer_times(contest: Contest, data: Data, share: float) -> tuple[float, float]:
    """Seconds to fit and to score; the fit sees all rows, the score a share of them, scaled up."""
    detector = contest.make(data)
    column = "logits" if contest.reads == "logits" else "features"
    started = clock()
    if contest.fits:
        rows = getattr(data, contest.fits)
        name = {"logits": "fit_logits", "maps": "fit_feature_maps"}.get(contest.reads, "fit_features")
        getattr(detector, name)(shaped(rows[column], contest), rows.labels)
    middle = clock()
    values = shaped(data.test[column][: int(share * TEST)], contest)
    if contest.reads == "inputs":
        detector.to("cpu").predict(values)
    else:
        name = {"logits": "predict_logits", "maps": "predict_feature_maps"}.get(contest.reads, "predict_features")
        with torch.no_grad():
            getattr(detector, name)(values)
    return middle - started, (clock() - middle) / share


def shaped(values: Tensor, contest: Contest) -> Tensor:
    return values[:, :, None, None] if contest.reads == "maps" else values


def our_times(contest: Contest, data: Data, shared: bool = False) -> tuple[float, float]:
    detector = oods.create_detector(contest.ours, **(contest.params or {}))
    parts = (data.train, data.val, data.test)
    # new views unless shared: what a first fit learnt of the training rows must not help the second
    train, val, test = parts if shared else (fresh(part) for part in parts)
    started = clock()
    detector.fit(train, val)
    middle = clock()
    detector.score(test)
    return middle - started, clock() - middle


def show_shared(data: Data, contests: list[Contest]) -> None:
    started = clock()
    data.train.moments()
    for part in (data.train, data.val, data.test):
        part.broken_rows("logits"), part.broken_rows("features"), part.negative_rows("features")
    print(f"checks and moments, once for all: {clock() - started:.3f} s\n")
    print("| detector | fit, s | score, s |\n|---|---|---|")
    for contest in contests:
        fit, score = best(lambda contest=contest: our_times(contest, data, shared=True))
        print(f"| {contest.ours} | {fit:.3f} | {score:.3f} |", flush=True)


def fresh(rows: oods.Activations) -> oods.Activations:
    named = {name: rows[name] for name in ("logits", "features", "labels")}
    return oods.Activations(**named, head=rows.head)


def best(measure: Callable[[], tuple[float, float]]) -> tuple[float, float]:
    runs = [measure()]
    while len(runs) < 3 and sum(runs[0]) < SLOW_SECONDS:
        runs.append(measure())
    return min(runs, key=sum)


BEGIN, END = "<!-- measured again -->", "<!-- end -->"
"""Between these lines of the page stands what ``--section`` writes."""


@dataclass(frozen=True)
class Outcome:
    """One contest that both libraries ended."""

    classes: int
    name: str
    ours: tuple[float, float]
    theirs: tuple[float, float]
    share: float

    @property
    def ratio(self) -> float:
        """How many times faster ours is."""
        return sum(self.theirs) / sum(self.ours)

    @property
    def verdict(self) -> str:
        """Empty where ours takes at most 1.1 times as long."""
        excess = sum(self.ours) - 1.1 * sum(self.theirs)
        return "" if excess <= 0 else "within 5 ms" if excess <= 0.005 else "SLOWER"

    def sentence(self) -> str:
        """The outcome in words."""
        words = {"": "no slower", "within 5 ms": "slower by less than 5 ms", "SLOWER": "slower"}[self.verdict]
        return (
            f"{self.name} at {self.classes:,} classes is {words} than pytorch-ood's: {sum(self.ours):.2f} s against "
            f"{sum(self.theirs):.2f} s ({self.ratio:.1f} times faster)"
        )


def section(outcomes: list[Outcome], options: argparse.Namespace) -> str:
    """The part of the page about some detectors, every sentence from the numbers."""
    clocks = "the processor's time" if options.processor else "wall time"
    named = f" --only {' '.join(options.only)}" if options.only else ""
    given = f"{' --processor' if options.processor else ''} --threads {options.threads}{named}"
    return "\n".join(
        [
            f"**Answer.** {'; '.join(each.sentence() for each in outcomes)}.",
            "",
            f"**Command.** `python benchmarks/detector_speed.py{given}` (pytorch-ood {version('pytorch-ood')})",
            "",
            f"**Machine.** {len(os.sched_getaffinity(0))} cores, {options.threads} of them used, load before "
            f"{os.getloadavg()[0]:.1f}; {clocks}, both libraries in turn, best of {ROUNDS}. "
            f"**Date.** {datetime.now(UTC):%Y-%m-%d}",
            "",
            "| classes | detector | fit, s | score, s | peer's fit, s | peer's score, s | times faster |",
            "|---|---|---|---|---|---|---|",
            *(
                f"| {each.classes:,} | {each.name} | {each.ours[0]:.3f} | {each.ours[1]:.3f} | {each.theirs[0]:.3f} "
                f"| {each.theirs[1]:.3f} | {each.ratio:.1f} |"
                for each in outcomes
            ),
        ]
    )


def write_section(page: Path, text: str) -> None:
    """Put a text between the two marks of a page."""
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise SystemExit(f"{page}: has no lines {BEGIN} and {END}")
    page.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")


def compare(data: Data, contest: Contest) -> Outcome | None:
    share = contest.share if data.classes >= 1000 else 1.0
    ours, theirs = [our_times(contest, data)], []
    try:
        theirs.append(peer_times(contest, data, share))
    except Exception as error:
        print(f"| {contest.ours} | {ours[0][0]:.3f} | {ours[0][1]:.3f} | failed: {str(error)[:60]} | | | |", flush=True)
        return None
    # in turn, so that a neighbour on the machine slows both
    while len(ours) < ROUNDS and sum(ours[0]) + sum(theirs[0]) < SLOW_SECONDS:
        ours.append(our_times(contest, data))
        theirs.append(peer_times(contest, data, share))
    outcome = Outcome(data.classes, contest.ours, min(ours, key=sum), min(theirs, key=sum), share)
    show(outcome)
    return outcome


def show(outcome: Outcome) -> None:
    """The line of a contest."""
    ours, theirs, shown = outcome.ours, outcome.theirs, "" if outcome.share == 1 else f"{outcome.share:g}"
    print(
        f"| {outcome.name} | {ours[0]:.3f} | {ours[1]:.3f} | {theirs[0]:.3f} | {theirs[1]:.3f} | {shown} "
        f"| {outcome.ratio:.1f} {outcome.verdict}|",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--classes", type=int, nargs="*", default=[10, 1000])
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--shared", action="store_true")
    parser.add_argument("--processor", action="store_true", help="count the processor's time")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--section", type=Path, help="the page whose marked part is written anew")
    options = parser.parse_args()
    outcomes: list[Outcome] = []
    global clock
    clock = time.process_time if options.processor else time.perf_counter
    torch.set_num_threads(options.threads)
    for classes in options.classes:
        data = Data(classes)
        print(f"\n{classes} classes, {torch.get_num_threads()} threads\n")
        chosen = [contest for contest in CONTESTS if not options.only or contest.ours in options.only]
        if options.shared:
            show_shared(data, chosen)
            continue
        print("| detector | fit, s | score, s | peer's fit, s | peer's score, s | peer's share | times faster |")
        print("|---|---|---|---|---|---|---|")
        found = [outcome for contest in chosen if (outcome := compare(data, contest)) is not None]
        outcomes += found
        ratios = [each.ratio for each in found]
        print(f"\nmedian: {statistics.median(ratios):.1f} times faster, least {min(ratios):.1f}")
    if options.section is not None:
        write_section(options.section, section(outcomes, options))


if __name__ == "__main__":
    main()
