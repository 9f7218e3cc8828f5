"""Claims about generated sets, each beside the numbers that it stands or falls by."""

from collections.abc import Iterator

import numpy as np

from oodscope.document.claim import Claim
from oodscope.document.wording import percent, span
from oodscope.metrics.generated.idness import ClassCheck, class_checks, hardness
from oodscope.metrics.metric import MEAN
from oodscope.runs.generated.ranks import ALL, INDEPENDENT, NETWORKS, rank_agreements
from oodscope.runs.generated.run import WORST, GeneratedStudy

RECOGNISED_NEAR, RECOGNISED_SHIFTED = 0.5, 0.6
"""Shares of images that keep their class for the judging ensemble: at most so many near, at least so many shifted."""


FIT = 0.8
"""Share of the ID test images that judges must recognise before their word on other images counts."""


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
    return [
        *_recognised(study),
        *_by_class(study),
        *_nearness(study),
        *_harder(study),
        *_harder_at_equal_idness(study),
        *_calibration(study),
        *_order(study),
    ]


def _recognised(study: GeneratedStudy) -> Iterator[Claim]:
    bounds = dict.fromkeys(study.sanity.near(), (RECOGNISED_NEAR, "at most"))
    bounds |= dict.fromkeys(study.sanity.shifted(), (RECOGNISED_SHIFTED, "at least"))
    for name, (bound, words) in bounds.items():
        check = study.sanity.of(name)
        share, interval = check.preserved, check.preserved_interval
        if share is None or interval is None:
            continue
        said = judges_fit(study) and not interval.low <= bound <= interval.high
        holds = (share <= bound) == (words == "at most") if said else None
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
                yield Claim(text, *_closer(study, name, other))
    for name in study.sanity.shifted():
        if name in distance and real:
            below = sum(distance[other] < distance[name] for other in real)
            text = f"{name} is farther from the training images than most real csid sets"
            holds = 2 * below > len(real) if judges_fit(study) else None
            yield Claim(text, holds, f"farther than {below} of {len(real)}" + _unfit(study))


def _closer(study: GeneratedStudy, name: str, other: str) -> tuple[bool | None, str]:
    """By kernel distances whose intervals do not meet; by Fréchet distances where only those were measured."""
    ours, theirs = study.sanity.of(name), study.sanity.of(other)
    if ours.kernel is None or theirs.kernel is None:
        assert ours.frechet is not None and theirs.frechet is not None
        evidence = f"Fréchet distance {ours.frechet:.3g} against {theirs.frechet:.3g}"
        return (ours.frechet < theirs.frechet if judges_fit(study) else None), evidence + _unfit(study)
    (value, low, high), (real, real_low, real_high) = ours.kernel, theirs.kernel
    evidence = (
        f"KID {value:.3g} [{low:.3g}–{high:.3g}] against {real:.3g} [{real_low:.3g}–{real_high:.3g}] "
        f"in features of {study.sanity.features}"
    )
    apart = high < real_low or real_high < low
    return (value < real if apart and judges_fit(study) else None), evidence + _unfit(study)


def class_report(study: GeneratedStudy, name: str, control: str) -> list[ClassCheck]:
    """Every class of a generated near set beside what judges see in a real OOD set; empty where images are not kept."""
    check, real = study.sanity.of(name), study.sanity.of(control)
    if not check.source or not real.taken_for:
        return []
    taken = np.repeat(np.arange(len(real.taken_for)), real.taken_for)
    return class_checks(np.array(check.source), np.array(check.judged), taken, len(real.taken_for))


def _by_class(study: GeneratedStudy) -> Iterator[Claim]:
    for name in study.sanity.near():
        for control in study.real[:1]:
            checks = class_report(study, name, control)
            failing = [study.sanity.class_names[each.label] for each in checks if each.passes is False]
            known = [each for each in checks if each.passes is not None]
            if known:
                text = f"{name}: no class is seen more than twice as often as judges see it in {control}"
                words = f"{len(known) - len(failing)} of {len(known)} classes"
                words += f"; seen too often: {', '.join(failing)}" if failing else ""
                yield Claim(text, not failing if judges_fit(study) else None, words + _unfit(study))


def _harder_at_equal_idness(study: GeneratedStudy) -> Iterator[Claim]:
    """AUROC on the images in which the judges do not see the source class, beside the whole real set."""
    for name in study.sanity.near():
        check = study.sanity.of(name)
        if not check.source:
            continue
        unseen = np.array(check.source) != np.array(check.judged)
        for other in study.real:
            lower, higher, rows = 0, 0, 0
            for result in study.results:
                scores = result.scores
                for detector in scores.detectors:
                    id_scores = scores.scores(detector, role="id_test")
                    ours = hardness(id_scores, scores.scores(detector, set=name), unseen)
                    real = scores.scores(detector, set=other)
                    theirs = hardness(id_scores, real, np.ones(len(real), dtype=bool))
                    if ours is None or theirs is None:
                        continue
                    rows += 1
                    lower += ours.interval.high < theirs.interval.low
                    higher += ours.interval.low > theirs.interval.high
            if rows:
                text = f"{name}, where judges do not see the class, is harder than {other} for most detectors"
                words = (
                    f"{int(unseen.sum()):,} of {len(unseen):,} images; AUROC lower in {lower}, higher in {higher} and "
                    f"within noise in {rows - lower - higher} of {rows} rows, by 95 % intervals over images"
                )
                holds = True if 2 * lower > rows else False if 2 * (rows - lower) > rows and 2 * higher > rows else None
                yield Claim(text, holds if judges_fit(study) else None, words + _unfit(study))


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
    found = rank_agreements(study)
    independent = [name for name in study.networks if name not in study.circular]
    apart = any(each.scope == INDEPENDENT for each in found)
    scope = INDEPENDENT if apart else ALL if len(study.networks) > 1 else study.networks[0]
    count = len(independent) if apart else len(study.networks)
    for each in found:
        if each.real == MEAN and each.scope == scope and each.interval is not None:
            text = f"{each.generated} orders detectors as the real sets do, better than chance"
            ends = f"{each.interval.low:.2f} to {each.interval.high:.2f}"
            enough = count >= NETWORKS
            few = "" if enough else f"; {count} networks are fewer than {NETWORKS}"
            evidence = f"τ = {each.tau:.2f} ({ends}, {each.over} redrawn) over {each.rows} rows, {scope}{few}"
            yield Claim(text, each.interval.low > 0 if enough else None, evidence)


def _unfit(study: GeneratedStudy) -> str:
    if judges_fit(study):
        return ""
    share = judges_recognise(study)
    seen = "no known share" if share is None else f"{percent(share)} %"
    return f"; judges recognise {seen} of the ID test images, less than {FIT:.0%}"
