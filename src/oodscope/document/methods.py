"""What papers call detectors: the name in running text and the publication, by the id that tables use."""

import re

from oodscope.base.catalog import catalog

NAMES = {
    "actsub": "ActSub",
    "adascale_a": "AdaSCALE-A",
    "adascale_l": "AdaSCALE-L",
    "ash": "ASH",
    "ash_p": "ASH-P",
    "ash_s": "ASH-S",
    "autoencoder": "Autoencoder",
    "average": "Average of ranks",
    "cadref": "CADRef",
    "cfood": "CF-OOD",
    "combood": "CombOOD",
    "conf_branch": "ConfBranch",
    "core": "CORE",
    "cover": "CoVer",
    "csi": "CSI",
    "csi_unlabelled": "CSI without labels",
    "dempster_shafer": "Dempster-Shafer",
    "dice": "DICE",
    "dropout": "MC dropout",
    "ebo": "Energy",
    "ensemble_entropy": "Deep ensemble (entropy)",
    "entropy": "Entropy",
    "fdbd": "fDBD",
    "gen": "GEN",
    "gl_mcm": "GL-MCM",
    "glow": "Glow",
    "gmm": "GMM",
    "gmm_ddu": "DDU",
    "godin": "G-ODIN",
    "gradnorm": "GradNorm",
    "gram": "Gram",
    "grood": "GROOD",
    "guaranteed_msp": "GOOD",
    "input_complexity": "Input complexity",
    "iodin": "iODIN",
    "klm": "KL matching",
    "knn": "KNN",
    "kpca": "Kernel PCA",
    "layers": "Layer aggregation",
    "likelihood_ratio": "Likelihood ratio",
    "logitgap": "LogitGap",
    "lts": "LTS",
    "maha_free": "Label-free Mahalanobis",
    "mahalanobis": "Mahalanobis (geometry)",
    "mahalanobis_layers": "Mahalanobis (learnt layers)",
    "mahalanobis_pp": "Mahalanobis++",
    "maxcosine": "MaxCosine",
    "mc_dropout": "MC dropout of the network",
    "mcd": "MCD",
    "mcm": "MCM",
    "mds": "Mahalanobis",
    "mds_ensemble": "Mahalanobis ensemble",
    "mfs": "Marginal feature selection",
    "mls": "MaxLogit",
    "mm_pp": "MM++",
    "mos": "MOS",
    "msp": "MSP",
    "mutual_information": "Mutual information",
    "nac": "NAC",
    "nae": "NAE",
    "nci": "NCI",
    "neco": "NECO",
    "neglabel": "NegLabel",
    "negrefine": "NegRefine",
    "nnguide": "NNGuide",
    "odin": "ODIN",
    "opengan": "OpenGAN",
    "openmax": "OpenMax",
    "optfs": "OptFS",
    "ora": "ORA",
    "pixelcnn": "PixelCNN++",
    "pro": "PRO",
    "rankfeat": "RankFeat",
    "ras": "RAS",
    "react": "ReAct",
    "reject": "ATOM",
    "relation": "Relation",
    "residual": "Residual",
    "rmds": "Relative Mahalanobis",
    "rmds_pp": "Relative Mahalanobis++",
    "ross": "ROSS",
    "rotpred": "RotPred",
    "scale": "SCALE",
    "she": "SHE",
    "sirc": "SIRC",
    "ssd": "SSD",
    "temp_scaling": "Temperature scaling",
    "vim": "ViM",
    "vra": "VRA",
    "weiper": "WeiPer",
}

_ID = re.compile(r"[a-z0-9_]+")


def method_name(detector: str) -> str:
    """The name that papers use: ``KNN`` for ``knn``, ``KNN (k=10)`` for ``knn(k=10)``, ``ReAct + MSP``.

    A detector of somebody else keeps its own name.
    """
    first, plus, second = detector.partition("+")
    if plus:
        return f"{method_name(first)} + {method_name(second)}"
    base = _ID.match(first)
    if base is None or base[0] not in NAMES:
        return detector
    rest = first[base.end() :].strip()
    return f"{NAMES[base[0]]} {rest}" if rest else NAMES[base[0]]


def method_paper(detector: str) -> str:
    """Name, authors, venue and title, for whoever meets the id for the first time; empty where it is not known."""
    parts = []
    for part in detector.split("+"):
        base = _ID.match(part)
        entry = catalog("detectors").get(base[0]) if base else None
        if entry and entry.get("paper_title"):
            parts.append(f"{method_name(base[0])}: {entry['paper_title']} ({entry['paper']})" if base else "")
    return "; ".join(parts)
