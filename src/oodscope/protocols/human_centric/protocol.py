r"""Human-centric evaluation: keep what the classifier gets right, reject what it gets wrong.

Zhu et al., "Rethinking Out-of-Distribution Detection From a Human-Centric Perspective" (arXiv 2211.16778), and the
selective prediction that it joins. A threshold keeps 95 or 99 % of a threshold sample; at it, the detection error rate
counts wrong decisions, on foreign images (label shift) as on images of known classes, clean or corrupted (input shift).

The paper takes the threshold from correctly classified training images (``train_correct``), which compares detectors
at different operating points, because networks fit their training images and detectors show it differently. The
headline therefore is ``val_correct``, where all detectors reject the same share of correct new images, and AUGRC,
which needs no threshold. The realised false rejection (``frr95_...``) is measured beside each: a detector that learns
from ``id_val`` itself (``klm``) has seen the images of that threshold too, and the rate shows it.
"""

from oodscope.base.config import parse
from oodscope.base.errors import DataError
from oodscope.protocols.human_centric.options import HumanCentric
from oodscope.protocols.human_centric.rows import baseline_rows, conventional_rows, rejection_rows, selective_estimates
from oodscope.protocols.human_centric.sets import estimate_rows, labelled_sets
from oodscope.protocols.ranking import detector_context, measure_accuracy, run_context
from oodscope.results.measurement import Measurement, Measurements
from oodscope.results.scoretable import ScoreTable

NAME = "human_centric"


def measure(scores: ScoreTable) -> Measurements:
    """Every number of the protocol, per set and as means over all sets, label shift and input shift."""
    if not scores.sets("id_test"):
        raise DataError("human_centric needs an id_test set; the score table has none")
    options = parse(HumanCentric, scores.metadata.get(NAME, {}), NAME)
    sets = labelled_sets(scores)
    context = {**run_context(scores), "protocol": NAME}
    rows: list[Measurement] = list(baseline_rows(sets, context))
    contexts = {each: {**context, **detector_context(scores, each)} for each in scores.detectors}
    for detector, shared in contexts.items():
        rows += rejection_rows(scores, detector, sets, shared, options.costs)
        rows += conventional_rows(scores, detector, sets, shared)
    for detector, found in selective_estimates(scores, sets, int(context["seed"] or 0)).items():
        for metric, estimates in found.items():
            rows += estimate_rows(contexts[detector], metric, sets, estimates)
    return measure_accuracy(scores, NAME, ("id_test", "csid")) + Measurements(rows)
