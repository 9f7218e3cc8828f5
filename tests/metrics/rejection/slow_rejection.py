"""Rejection and selective prediction one image at a time, from the definitions; nothing of oodscope is used."""

from math import inf


def quantile(values, share):
    """Linear interpolation between order statistics, as NumPy's default; ``share`` as a pair of whole numbers."""
    ordered = sorted(values)
    part, whole = share
    below, rest = divmod((len(ordered) - 1) * part, whole)
    if rest == 0:
        return ordered[below]
    return ordered[below] + rest / whole * (ordered[below + 1] - ordered[below])


def decisions(scores, correct, gamma):
    """(kept correct, rejected correct, kept wrong, rejected wrong)."""
    counts = [0, 0, 0, 0]
    for score, right in zip(scores, correct):
        counts[2 * (not right) + (score >= gamma)] += 1
    return tuple(counts)


def der(scores, correct, gamma):
    _, rejected_correct, kept_wrong, _ = decisions(scores, correct, gamma)
    return (rejected_correct + kept_wrong) / len(scores)


def oracle_der(scores, correct):
    return min(der(scores, correct, gamma) for gamma in [-inf, *scores, inf])


def risk_coverage(scores, correct):
    """(coverage, selective risk, generalised risk) at each distinct score, tied images accepted together."""
    n = len(scores)
    points = []
    for level in sorted(set(scores)):
        accepted = [right for score, right in zip(scores, correct) if score <= level]
        failures = accepted.count(False)
        points.append((len(accepted) / n, failures / len(accepted), failures / n))
    return points


def aurc(scores, correct):
    """Every image at the selective risk of the step that accepts it."""
    risks = {level: risk for level, (_, risk, _) in zip(sorted(set(scores)), risk_coverage(scores, correct))}
    return sum(risks[score] for score in scores) / len(scores)


def e_aurc(scores, correct):
    best = sorted(correct, reverse=True)
    return aurc(scores, correct) - aurc(list(range(len(best))), best)


def augrc(scores, correct):
    """Trapezoids under the generalised risk, from the origin."""
    area, before = 0.0, (0.0, 0.0)
    for coverage, _, risk in risk_coverage(scores, correct):
        area += (coverage - before[0]) * (risk + before[1]) / 2
        before = (coverage, risk)
    return area


def auroc_failure(scores, correct):
    good = [score for score, right in zip(scores, correct) if right]
    bad = [score for score, right in zip(scores, correct) if not right]
    return sum((b > g) + (b == g) / 2 for b in bad for g in good) / (len(good) * len(bad))


def coverage_at_risk(scores, correct, limit):
    return max((coverage for coverage, risk, _ in risk_coverage(scores, correct) if risk <= limit), default=0.0)
