"""Claims about generated sets, each beside the numbers that it stands or falls by."""

from collections.abc import Iterator

from oodscope.document.claim import Claim
from oodscope.document.wording import percent, span
from oodscope.metrics.metric import MEAN
from oodscope.runs.generated.ranks import ALL, rank_agreements
from oodscope.runs.generated.run import WORST, GeneratedStudy

RECOGNISED_NEAR, RECOGNISED_SHIFTED = 0.5, 0.6
"""Shares of images that keep their class for the judging ensemble: at most so many near, at least so many shifted."""


FIT = 0.8
"""Share of the ID test images that judges must recognise before their word on other images counts."""

NETWORKS = 7
"""Fewest networks by which an order of detectors may be called the same or another."""


def judges_recognise(study: GeneratedStudy) -> float | None:
    """The share of the ID test images to which the judging ensemble gives their class; None where that is not known."""
    known = [each.preserved for each in study.sanity.sets if each.role == "id_test" and each.preserved is not None]
    return known[0] if known else None


def judges_fit(study: GeneratedStudy) -> bool:
    """Whether the judges may judge: they recognise at least 80 % of real test images."""
    share = judges_recognise(study)
    return share is not None and share >= FIT


def claims(study: GeneratedStudy) -> list[Claim]:
    """Every claim that the study has numbers for; what unfit judges say of images decides nothing."""
    return [*_recognised(study), *_nearness(study), *_harder(study), *_calibration(study), *_order(study)]


def _recognised(study: GeneratedStudy) -> Iterator[Claim]:
    bounds = dict.fromkeys(study.sanity.near(), (RECOGNISED_NEAR, "at most"))
    bounds |= dict.fromkeys(study.sanity.shifted(), (RECOGNISED_SHIFTED, "at least"))
    for name, (bound, words) in bounds.items():
        check = study.sanity.of(name)
        share, interval = check.preserved, check.preserved_interval
        if share is None or interval is None:
            continue
        holds = (share <= bound if words == "at most" else share >= bound) if judges_fit(study) else None
        text = f"{name}: judges see the class that an image came from in {words} {bound:.0%}"
        seen = f"{percent(share)} % ({span(interval.low, interval.high)}) of {check.n:,} images"
        yield Claim(text, holds, seen + _unfit(study))


def _nearness(study: GeneratedStudy) -> Iterator[Claim]:
    distance = {each.name: each.frechet for each in study.sanity.sets if each.frechet is not None}
    corrupted = [each.name for each in study.sanity.sets if each.role == "csid" and each.name in distance]
    real = [name for name in corrupted if name not in study.sanity.generated]
    for name in study.sanity.near():
        for other in study.real:
            if name in distance and other in distance:
                text = f"{name} is closer to the training images than {other} is"
                holds = distance[name] < distance[other] if judges_fit(study) else None
                evidence = f"Fréchet distance {distance[name]:.3g} against {distance[other]:.3g}"
                yield Claim(text, holds, evidence + _unfit(study))
    for name in study.sanity.shifted():
        if name in distance and real:
            below = sum(distance[other] < distance[name] for other in real)
            text = f"{name} is farther from the training images than most real csid sets"
            holds = 2 * below > len(real) if judges_fit(study) else None
            yield Claim(text, holds, f"farther than {below} of {len(real)}" + _unfit(study))


def _harder(study: GeneratedStudy) -> Iterator[Claim]:
    found = study.separation("auroc")
    rows = list(dict.fromkeys((network, detector) for network, detector, _ in found))
    for name in study.sanity.near():
        for other in study.real:
            lower = sum(found[*row, name].value < found[*row, other].value for row in rows)
            text = f"{name} is harder than {other} for most detectors"
            yield Claim(text, 2 * lower > len(rows), f"lower AUROC in {lower} of {len(rows)} rows")


def _calibration(study: GeneratedStudy) -> Iterator[Claim]:
    found = study.calibration()
    for name in study.sanity.shifted():
        pairs = [
            (found[each, name].value, found[each, WORST].value) for each in study.networks if (each, WORST) in found
        ]
        if pairs:
            above = sum(ours > theirs for ours, theirs in pairs)
            text = f"{name} is worse calibrated than the worst real csid set, for most networks"
            yield Claim(text, 2 * above > len(pairs), f"larger ECE in {above} of {len(pairs)} networks")


def _order(study: GeneratedStudy) -> Iterator[Claim]:
    scope = ALL if len(study.networks) > 1 else study.networks[0]
    for each in rank_agreements(study):
        if each.real == MEAN and each.scope == scope and each.interval is not None:
            text = f"{each.generated} orders detectors as the real sets do, better than chance"
            ends = f"{each.interval.low:.2f} to {each.interval.high:.2f}"
            enough = len(study.networks) >= NETWORKS
            few = "" if enough else f"; {len(study.networks)} networks are fewer than {NETWORKS}"
            evidence = f"τ = {each.tau:.2f} ({ends}) over {each.rows} rows{few}"
            yield Claim(text, each.interval.low > 0 if enough else None, evidence)


def _unfit(study: GeneratedStudy) -> str:
    if judges_fit(study):
        return ""
    share = judges_recognise(study)
    seen = "no known share" if share is None else f"{percent(share)} %"
    return f"; judges recognise {seen} of the ID test images, less than {FIT:.0%}"
