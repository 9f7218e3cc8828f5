"""Printed numbers beside measured ones, and claims beside what the scores give."""

from collections.abc import Iterator
from math import isclose

from oodscope.base.errors import DataError
from oodscope.leaderboard.records.entry import Entry
from oodscope.leaderboard.records.records import Claim, Reported
from oodscope.leaderboard.records.standing import Difference
from oodscope.results.measurement import Measurement, Measurements

CLAIM_TOLERANCE = 1e-6
"""Of a number that was computed from the same scores by the same arithmetic, on another machine."""


def differences(entry: Entry, measurements: Measurements) -> Iterator[Difference]:
    """Every printed number that was measured too."""
    for said in entry.reported:
        row = _measured(said, measurements)
        if row is not None:
            place = (said.protocol, said.metric, said.group, said.set)
            above = beyond_noise(said, row)
            yield Difference(*place, said.value, row.value, row.low, row.high, above, said.source)


def beyond_noise(said: Reported, row: Measurement) -> bool:
    """Whether the printed number, at either end of its rounding, lies outside of the interval of the measured one."""
    low = row.value if row.low is None else min(row.low, row.value)
    high = row.value if row.high is None else max(row.high, row.value)
    # the digits of a decimal fraction are not exact in binary: 0.8803 + 0.00005 may miss 0.88035 by an ulp
    slack = 1e-12
    return said.value + said.rounding < low - slack or said.value - said.rounding > high + slack


def unmeasured(entry: Entry, measurements: Measurements) -> list[Reported]:
    """Printed numbers that the scores do not speak of."""
    return [said for said in entry.reported if _measured(said, measurements) is None]


def check_claims(entry: Entry, measurements: Measurements) -> None:
    """Refuse an entry that says another number than its scores give."""
    claims = list(entry.claims)
    if entry.model.id_accuracy is not None:
        claims += _accuracy_claim(entry, measurements)
    for each in entry.thresholds:
        place, name = f"id_{each.source.split('_')[0]}", f"{each.keep}_{each.source}"
        shared = {"protocol": _threshold_protocol(measurements), "group": "threshold", "set": place}
        claims.append(Claim(**shared, metric=f"threshold{name}", value=each.gamma))
        claims.append(Claim(**shared, metric=f"tied{name}", value=each.tied))
        if each.false_rejection is not None:
            claims += _false_rejection_claim(f"frr{name}", each.false_rejection, measurements)
    for said in claims:
        row = _measured(said, measurements)
        where = f"{said.metric} of {said.group} {said.set} ({said.protocol})"
        if row is None:
            raise DataError(f"the entry claims {where}, which its scores do not give")
        if not isclose(said.value, row.value, rel_tol=CLAIM_TOLERANCE, abs_tol=CLAIM_TOLERANCE):
            raise DataError(f"the entry claims {where} is {said.value:.6g}; its scores give {row.value:.6g}")


def _measured(said: Reported | Claim, measurements: Measurements) -> Measurement | None:
    place = {name: getattr(said, name) for name in ("protocol", "metric", "group", "set")}
    rows = measurements.filter(**place)
    return rows[0] if rows else None


def _accuracy_claim(entry: Entry, measurements: Measurements) -> list[Claim]:
    tests = [name for name, each in entry.benchmark.sets.items() if each.role == "id_test"]
    rows = [row for row in measurements.filter(metric="accuracy", group="id") if row.set in tests][:1]
    value = entry.model.id_accuracy or 0.0
    return [Claim(protocol=row.protocol, metric="accuracy", group="id", set=row.set, value=value) for row in rows]


def _threshold_protocol(measurements: Measurements) -> str:
    """The protocol under which thresholds were measured; empty if none was."""
    return next((row.protocol for row in measurements.filter(group="threshold")), "")


def _false_rejection_claim(metric: str, value: float, measurements: Measurements) -> list[Claim]:
    protocol = _threshold_protocol(measurements)
    tests = [row.set for row in measurements.filter(protocol=protocol, metric="accuracy", group="id")]
    place = {"protocol": protocol, "metric": metric, "group": "input_shift"}
    return [Claim(**place, set=name, value=value) for name in tests[:1]]
