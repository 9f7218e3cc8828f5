"""Every ranking metric of one ranking, for tests that look at all of them."""

from oodscope.metrics.catalog import RANKING
from oodscope.metrics.ranking.ranking import Ranking


def point_metrics(ranking: Ranking) -> dict[str, float]:
    return {metric.name: float(metric.of(ranking.walk(metric.positive))) for metric in RANKING}
