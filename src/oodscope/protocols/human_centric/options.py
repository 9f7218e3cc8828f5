"""What a user may choose about the protocol ``human_centric``."""

from pydantic import Field

from oodscope.base.config import StrictModel


class Prices(StrictModel):
    """What the two mistakes of a detector cost, in any unit."""

    false_rejection: float = Field(default=1.0, ge=0)
    false_acceptance: float = Field(default=1.0, ge=0)


class HumanCentric(StrictModel):
    """Options of ``human_centric``; they travel with the scores, so that the numbers can be measured again.

    Parameters
    ----------
    threshold_split : fit detectors on one half of ``id_train``, class by class, and take the training thresholds from
        the other. A detector that remembers its training images (KNN holds them, MDS and ViM their statistics) finds
        them more familiar than any new image, and a threshold taken from them rejects too much. Every protocol of the
        run then sees detectors fitted on half of the images.
    train_rows : at most so many training images are scored for thresholds, drawn at random. With 50,000 the share
        kept at "99" is known to 0.1 points.
    costs : prices of the two mistakes; with them, rows of the mean cost are measured too.
    """

    threshold_split: bool = False
    train_rows: int = Field(default=50_000, gt=0)
    costs: Prices | None = None
