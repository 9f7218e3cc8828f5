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
    """

    name: str
    summary: str
    measure: Callable[[ScoreTable], Measurements]


PROTOCOLS = {
    protocol.name: protocol
    for protocol in (
        Protocol("standard", "tell id_test from each near and far set", standard.measure),
        Protocol("full_spectrum", "the same, with covariate-shifted ID as negatives too", full_spectrum.measure),
    )
}


def get_protocol(name: str) -> Protocol:
    """The protocol called ``name``; an unknown name suggests the nearest."""
    if name not in PROTOCOLS:
        raise UnknownNameError("protocol", name, PROTOCOLS, f"Known: {', '.join(PROTOCOLS)}")
    return PROTOCOLS[name]
