"""Protocol: a pure function from scores to measurements."""

from collections.abc import Callable
from dataclasses import dataclass

from oodscope.base.errors import UnknownNameError
from oodscope.protocols import full_spectrum, standard
from oodscope.results import Measurements, ScoreTable


@dataclass(frozen=True)
class Protocol:
    """One way to judge detectors.

    Parameters
    ----------
    name : as in configurations and result rows.
    summary : one line for a reader.
    measure : every number of the protocol, from the stored scores alone.
    negatives : the roles that count as in-distribution where it ranks images; empty if it does not.
    """

    name: str
    summary: str
    measure: Callable[[ScoreTable], Measurements]
    negatives: tuple[str, ...] = ()


PROTOCOLS = {
    protocol.name: protocol
    for protocol in (
        Protocol("standard", "tell id_test from each near and far set", standard.measure, standard.NEGATIVES),
        Protocol(
            "full_spectrum",
            "the same, with covariate-shifted ID as negatives too",
            full_spectrum.measure,
            full_spectrum.NEGATIVES,
        ),
    )
}


def get_protocol(name: str) -> Protocol:
    """The protocol called ``name``; an unknown name suggests the nearest."""
    if name not in PROTOCOLS:
        raise UnknownNameError("protocol", name, PROTOCOLS, f"Known: {', '.join(PROTOCOLS)}")
    return PROTOCOLS[name]
