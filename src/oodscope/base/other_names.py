"""Names that papers and other libraries use for what is called otherwise here: for suggestions, never accepted."""

_DETECTORS = {
    ("energy", "energy_score", "energybased", "ebm"): ("ebo",),
    ("mahalanobis", "maha", "mahalanobis_distance"): ("mds", "mahalanobis_pp"),
    ("maxlogit", "max_logit", "maxlogits", "logit"): ("mls",),
    ("softmax", "maxsoftmax", "max_softmax", "baseline", "confidence"): ("msp",),
    ("relative_mahalanobis", "rmd", "rmaha"): ("rmds",),
    ("kl_matching", "klmatching"): ("klm",),
    ("nearest_neighbors", "nearest_neighbours", "neighbors", "deep_knn", "knn_ood"): ("knn",),
    ("temperature", "temperature_scaling"): ("temp_scaling",),
    ("virtual_logit", "virtual_logit_matching"): ("vim",),
    ("generalized_entropy",): ("gen",),
    ("simplified_hopfield", "hopfield"): ("she",),
}
_METRICS = {
    ("fpr95", "fpr", "fpr@95", "fpr_at_95", "fpr95tpr", "fpr@95tpr", "fpr_at_95_tpr"): (
        "fpr95_id_positive",
        "fpr95_ood_positive",
    ),
    ("aupr",): ("aupr_in", "aupr_out"),
    ("auc", "roc", "rocauc", "roc_auc"): ("auroc",),
    ("acc",): ("accuracy",),
}
_KINDS = {"detector": _DETECTORS, "metric": _METRICS}


def other_names(kind: str, name: str) -> tuple[str, ...]:
    """What ``name`` is called here, if another name is usual for it elsewhere.

    >>> other_names("detector", "Energy")
    ('ebo',)
    """
    plain = name.strip().lower().replace("-", "_").replace(" ", "_")
    return next((here for elsewhere, here in _KINDS.get(kind, {}).items() if plain in elsewhere), ())
