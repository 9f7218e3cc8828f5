"""How many examples a property test tries, by tier; docs/testing.md says what the tiers are."""

from hypothesis import settings

COUNTS = {"check": 20, "test": 40, "soak": 2000}
"""Of a property test that asks for no other number; one that does keeps its share of it in every tier."""
TIER = "OODSCOPE_TEST_TIER"
"""The environment variable by which the Makefile names the tier; without it, as in continuous integration."""


def load_tier(name: str) -> None:
    """Register a hypothesis profile per tier and load the one named."""
    for tier, count in COUNTS.items():
        settings.register_profile(tier, max_examples=count, deadline=None)
    if name not in COUNTS:
        raise ValueError(f"{TIER} is {name!r}; give one of {', '.join(COUNTS)}")
    settings.load_profile(name)


def examples(count: int) -> settings:
    """So many examples in ``make test``, half of them in ``make check``, fifty times as many in ``make soak``."""
    return settings(max_examples=max(1, count * settings.default.max_examples // COUNTS["test"]))
