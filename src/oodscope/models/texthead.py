"""TextHead: how class names become the head of a vision-language network."""

from pydantic import Field, field_validator

from oodscope.base.config import StrictModel

PROMPTS = (
    "a photo of a {}.",
    "a photograph that shows the {}.",
    "a {} seen from nearby.",
    "a {} seen from far away.",
    "a {} where one usually finds it.",
    "a small, blurred picture of a {}.",
    "a drawing of a {}.",
    "several things, one of them a {}.",
)
"""Our own ensemble, called ``oodscope-8`` in descriptions. CLIP's authors published eighty sentences for ImageNet;
who wants theirs passes them as ``templates``."""

NEGATIVE_PROMPTS = ("the nice {}.",)


class TextHead(StrictModel):
    """What a vision-language network is told in words.

    Parameters
    ----------
    templates : sentences with ``{}`` where a class name goes; a class is the normalised mean of their embeddings.
    negatives : words that name none of the classes, for detectors that compare with them (NegLabel): a text file
        with one per line, or ``wordnet`` for the nouns of an installed WordNet.
    negative_count : how many of them are kept, those farthest from all classes.
    negative_share : what "far from all classes" means: a word's distance is taken to that share of the classes that
        are nearest to it, so that a few accidental neighbours do not count (the paper's percentile).
    negative_templates : the sentences around a negative word.
    """

    templates: tuple[str, ...] = PROMPTS
    negatives: str | None = None
    negative_count: int = Field(default=10_000, gt=0)
    negative_share: float = Field(default=0.05, ge=0, lt=1)
    negative_templates: tuple[str, ...] = NEGATIVE_PROMPTS

    @field_validator("templates", "negative_templates")
    @classmethod
    def _one_place_each(cls, templates: tuple[str, ...]) -> tuple[str, ...]:
        wrong = [each for each in templates if each.count("{}") != 1]
        if wrong or not templates:
            raise ValueError(f"a template is a sentence with one {{}}, not {wrong[0] if wrong else 'nothing'!r}")
        return templates

    @property
    def name(self) -> str:
        """How descriptions call the templates."""
        return "oodscope-8" if self.templates == PROMPTS else f"{len(self.templates)} of the user's"
