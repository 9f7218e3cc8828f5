"""Combination: a detector made of detectors, whose needs are its needs and whose state is its state."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_
from typing import Any

from oodscope.detectors.base import Cost, Detector, Needs


class OfMembers:
    """What a combination has from its members; of the class, from those that it has by default."""

    def __init__(self, join: Callable[[list[Detector]], Any]) -> None:
        self.join = join

    def __get__(self, combination: "Combination | None", owner: "type[Combination]") -> Any:
        return self.join((owner() if combination is None else combination)._new_members())


def needs_of(members: Sequence[Detector]) -> Needs:
    """Whatever any of them needs."""
    return reduce(or_, (each.needs for each in members), Needs(0))


def reads_features_alone(member: Detector) -> bool:
    """Whether any features will do for it: those of another layer, or some of them."""
    allowed = Needs.FEATURES | Needs.TRAIN | Needs.HELD_OUT | Needs.LABELS
    return not member.probes and Needs.FEATURES in member.needs and not member.needs & ~allowed


class Combination(Detector):
    """Subclasses give ``_new_members`` and what they do with the members' scores.

    What the members learn is kept under their numbers, so that saving, moving and forgetting are those of any detector.
    """

    optional = OfMembers(lambda members: reduce(or_, (each.optional for each in members)))
    cost = OfMembers(lambda members: max((each.cost for each in members), key=list(Cost).index))
    signed_features_ok = OfMembers(lambda members: all(each.signed_features_ok for each in members))
    log_probabilities_ok = OfMembers(lambda members: all(each.log_probabilities_ok for each in members))
    outputs = OfMembers(lambda members: tuple({name: 0 for each in members for name in each.outputs}))

    @abstractmethod
    def _new_members(self) -> list[Detector]:
        """The members, not fitted."""

    def _fitted_members(self) -> list[Detector]:
        """The members with the state that ``_keep`` took from them."""
        members, state = self._new_members(), self._state()
        for number, member in enumerate(members):
            prefix = _prefix(number)
            for key in state:
                if key.startswith(prefix):
                    setattr(member, key.removeprefix(prefix), state[key])
            member.to(self.device)
        return members

    def _keep(self, members: Sequence[Detector]) -> None:
        """Take what the members have learnt."""
        for number, member in enumerate(members):
            for key, value in member._state().items():
                setattr(self, f"{_prefix(number)}{key}", value)


def _prefix(number: int) -> str:
    return f"member{number}_"
