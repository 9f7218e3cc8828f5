"""ModelView: everything measured on one network."""

from dataclasses import dataclass

from oodscope.leaderboard.records.board import Board
from oodscope.leaderboard.records.standing import Standing
from oodscope.leaderboard.records.text import NOT_KNOWN
from oodscope.leaderboard.site.sheets import Ranks, Sheet, sheets


@dataclass(frozen=True)
class ModelView:
    """A network by its name, as entries describe it."""

    name: str
    standings: tuple[Standing, ...]
    sheets: tuple[Sheet, ...]

    @property
    def architecture(self) -> str:
        """As entries call it; several names where they do not agree."""
        return self._said([each.entry.model.architecture for each in self.standings])

    @property
    def recipe(self) -> str:
        return self._said([each.entry.model.recipe for each in self.standings])

    @property
    def facts(self) -> list[tuple[str, str]]:
        """What entries say of it; what nobody wrote down is left out."""
        models = [each.entry.model for each in self.standings]
        trained = [", ".join(each) for model in models for each in (model.trained_on,) if each]
        before = [", ".join(each) for model in models for each in (model.pretrained_on,) if each]
        said = {
            "architecture": self.architecture,
            "recipe": self.recipe,
            "trained on": self._said(trained),
            "pretrained on": self._said(before),
            "weights": self._said([model.weights_hash for model in models]),
        }
        return [(name, value) for name, value in said.items() if value]

    @staticmethod
    def _said(values: list[str]) -> str:
        return "; ".join(dict.fromkeys(value for value in values if value and value != NOT_KNOWN))


def model_views(board: Board, ranks: Ranks) -> dict[str, ModelView]:
    """The view of every network by its name, in alphabetical order."""
    found: dict[str, list[Standing]] = {}
    for each in board.standings:
        found.setdefault(each.entry.model.name, []).append(each)
    return {
        name: ModelView(name, tuple(own), tuple(sheets(own, "method", ranks))) for name, own in sorted(found.items())
    }
