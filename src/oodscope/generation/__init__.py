"""Images made on purpose: variations of outliers, searches among them, and the generators that draw them."""

from oodscope.generation.energy import RankProbit, Standardised
from oodscope.generation.found import Found, images_of
from oodscope.generation.samplers import Sampler, create_sampler
from oodscope.generation.search import search

__all__ = ["Found", "RankProbit", "Sampler", "Standardised", "create_sampler", "images_of", "search"]
