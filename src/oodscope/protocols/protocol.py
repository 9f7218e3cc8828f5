"""Protocol: a pure function from scores to measurements."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from oodscope.base.errors import UnknownNameError
from oodscope.protocols import full_spectrum, standard
from oodscope.protocols.exposure import flag_exposure, id_test_alone
from oodscope.results import Measurement, Measurements, ScoreTable


@dataclass(frozen=True)
class Protocol:
    """One way to judge detectors.

    Parameters
    ----------
    name : as in configurations and result rows.
    summary : one line for a reader.
    judge : every number of the protocol, from the stored scores alone.
    negatives : the sets that counted as in-distribution in one of its rows.
    """

    name: str
    summary: str
    judge: Callable[[ScoreTable], Measurements]
    negatives: Callable[[ScoreTable, Measurement], Sequence[str]] = id_test_alone

    def measure(self, scores: ScoreTable) -> Measurements:
        """Every number, each with what is known of images that the network had met before."""
        return flag_exposure(self.judge(scores), scores, self.negatives)


PROTOCOLS = {
    protocol.name: protocol
    for protocol in (
        Protocol("standard", "tell id_test from each near and far set", standard.measure),
        Protocol(
            "full_spectrum",
            "the same, with covariate-shifted ID as negatives too",
            full_spectrum.measure,
            full_spectrum.negative_sets,
        ),
    )
}


def get_protocol(name: str) -> Protocol:
    """The protocol called ``name``; an unknown name suggests the nearest."""
    if name not in PROTOCOLS:
        raise UnknownNameError("protocol", name, PROTOCOLS, f"Known: {', '.join(PROTOCOLS)}")
    return PROTOCOLS[name]
