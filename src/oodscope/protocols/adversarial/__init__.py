"""The protocol ``adversarial``: detectors judged on the worst outliers that a search can make.

Evaluation via generation (Yoon et al., "Evaluating Out-of-Distribution Detectors Through Adversarial Generation of
Outliers", NeurIPS 2022). Every chain starts at a source image as it is, so attacked scores never lie above clean ones;
the budget is told with every number, because the minimum over a search depends on how long it was allowed to look.
"""
