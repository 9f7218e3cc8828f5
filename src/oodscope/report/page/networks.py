"""What distinguishes networks of one name on a page: how they were trained, else the first letters of their weights."""

from collections import Counter
from collections.abc import Sequence

from oodscope.results.opening import of_kind
from oodscope.results.record import RunRecord
from oodscope.results.run import Run
from oodscope.runs.evaluation.run import Result


def distinctions(runs: Sequence[Run]) -> dict[str, str]:
    """By fingerprint, the words that set a network apart from another one of its name; none where names suffice."""
    results = {each.record.model_fingerprint: each for each in of_kind(runs, Result) if each.record.model_fingerprint}
    names = Counter(each.record.model for each in results.values())
    recipes = Counter((each.record.model, each.scores.context.recipe) for each in results.values())
    found = {}
    for mark, each in results.items():
        model, recipe = each.record.model, each.scores.context.recipe
        if names[model] > 1:
            found[mark] = recipe if recipe and recipes[model, recipe] == 1 else mark[:6]
    return found


def network_name(record: RunRecord, apart: dict[str, str]) -> str:
    """The name of a record's network, with what distinguishes it: ``small_cnn (ConfBranch)``."""
    words = apart.get(record.model_fingerprint)
    return f"{record.model} ({words})" if words else record.model
