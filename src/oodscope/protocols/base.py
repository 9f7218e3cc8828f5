"""Protocol: a pure function from scores to measurements."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from oodscope.base.errors import DataError, UnknownNameError
from oodscope.data.benchmark import Benchmark, Role
from oodscope.protocols import full_spectrum, standard
from oodscope.protocols.exposure import flag_exposure, id_test_alone
from oodscope.protocols.human_centric import protocol as human_centric
from oodscope.results.measurement import Measurement, Measurements
from oodscope.results.scoretable import ScoreTable


@dataclass(frozen=True)
class Protocol:
    """One way to judge detectors.

    Parameters
    ----------
    name : as in configurations and result rows.
    summary : one line for a reader.
    judge : every number of the protocol, from the stored scores alone.
    negatives : the roles that count as in-distribution where it ranks images; empty if it does not.
    roles : what it wants scored beside the test sets.
    known_sets : the sets that counted as in-distribution in one of its rows.
    version : of its numbers; a change after which the same scores give others is a new version.
    """

    name: str
    summary: str
    judge: Callable[[ScoreTable], Measurements]
    negatives: tuple[str, ...] = ()
    roles: tuple[Role, ...] = ()
    known_sets: Callable[[ScoreTable, Measurement], Sequence[str]] = id_test_alone
    version: int = 1

    def measure(self, scores: ScoreTable) -> Measurements:
        """Every number, each with what is known of images that the network had met before."""
        return flag_exposure(self.judge(scores), scores, self.known_sets)

    def check(self, benchmark: Benchmark) -> None:
        """Refuse a benchmark that lacks one of the roles, before anything is extracted."""
        filled = {role for role, _ in benchmark.members()}
        for role in self.roles:
            if role not in filled:
                raise DataError(
                    f"protocol {self.name} needs {role}: labelled images whose scores set its thresholds; "
                    f"benchmark {benchmark.name!r} has none"
                )


PROTOCOLS = {
    protocol.name: protocol
    for protocol in (
        Protocol("standard", "tell id_test from each near and far set", standard.measure, standard.NEGATIVES),
        Protocol(
            "full_spectrum",
            "the same, with covariate-shifted ID as negatives too",
            full_spectrum.measure,
            full_spectrum.NEGATIVES,
            known_sets=full_spectrum.negative_sets,
        ),
        Protocol(
            "human_centric",
            "keep what the classifier gets right, reject what it gets wrong (DER, AUGRC)",
            human_centric.measure,
            roles=("id_train", "id_val"),
        ),
    )
}


def get_protocol(name: str) -> Protocol:
    """The protocol called ``name``; an unknown name suggests the nearest."""
    if name not in PROTOCOLS:
        raise UnknownNameError("protocol", name, PROTOCOLS, f"Known: {', '.join(PROTOCOLS)}")
    return PROTOCOLS[name]
