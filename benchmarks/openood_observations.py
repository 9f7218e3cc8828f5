"""OpenOOD v1.5's observations, each with what judges it: rows of trained networks, or comparisons on one network.

Every verdict is a function of the rows that it is given. A comparison of two scores on the same networks is paired; one
of two trainings takes the variance between seeds, pooled over all trainings of the table. Comparisons on one network
come with errors of their own (``openood_evidence.py``), for other images and for other OOD classes; a difference counts
where it is beyond noise for both.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import norm, spearmanr, t

from training_rows import lines_of

ALPHA, WITHIN, FEWEST = 0.05, 1.0, 5
"""Level, points of accuracy that count as none, and trainings that "most" is said of."""
HOLDS, FAILS, UNKNOWN = "holds", "does not hold", "cannot say here"
AUGMENTATIONS = ("Cutout", "RandAugment", "AugMix", "PixMix", "RegMixup")
EXPOSED = ("OE", "MCD", "UDG", "MixOE")
HELD = "near-held"
"""Near sets without the classes that exposed networks learn from: all that those are tested on."""
OWN = {name: line.score for name, line in lines_of("cifar10").items() if line.score != "msp"}
"""The score of a training's published row; ``msp`` of all others."""

Tables = dict[str, pd.DataFrame]


class Verdict(NamedTuple):
    """What is said of one observation on one ID set, and why."""

    word: str
    reason: str


@dataclass(frozen=True)
class Observation:
    """One of the paper's observations.

    Parameters
    ----------
    claim : in our words.
    judge : of the rows of one ID set; ``None`` where it is about ImageNet.
    across : judges all ID sets together.
    evidence : name of the comparisons on one network that it rests on; empty if there are none.
    wanted : the sign that the paper gives each of them.
    absent : comparisons that it needs too, and that no plain network can give.
    imagenet : what of it is about ImageNet, and needs images that are not here; empty if nothing is.
    """

    claim: str
    judge: Callable[[pd.DataFrame], Verdict] | None = None
    across: Callable[[Tables], Verdict] | None = None
    evidence: str = ""
    wanted: int = 1
    absent: tuple[str, ...] = ()
    imagenet: str = ""


class Difference(NamedTuple):
    """A difference in points, with the p value that it is zero; ``nan`` where there are too few networks."""

    points: float
    p: float

    @property
    def sign(self) -> int:
        """1 or -1 beyond noise, else 0."""
        return int(np.sign(self.points)) if self.p <= ALPHA else 0


def networks(table: pd.DataFrame, method: str, detector: str, group: str = "near") -> pd.Series:
    """The mean AUROC over a group's sets of each network of a training, by its seed."""
    chosen = (table["method"] == method) & (table["detector"] == detector) & (table["group"] == group)
    return table[chosen].groupby("seed")["auroc"].mean()


def paired(first: pd.Series, second: pd.Series) -> Difference | None:
    """Two scores on the same networks; ``None`` where there are none."""
    both = (first - second).dropna()
    if both.empty:
        return None
    if len(both) < 2:
        return Difference(float(both.mean()), float("nan"))
    error = float(both.std(ddof=1)) / sqrt(len(both))
    p = 2 * float(t.sf(abs(both.mean()) / error, len(both) - 1)) if error > 0 else float(both.mean() == 0)
    return Difference(float(both.mean()), p)


def between(table: pd.DataFrame, first: pd.Series, second: pd.Series, of: pd.Series) -> Difference | None:
    """Two trainings, by the variance between seeds that ``of`` has within each training of the table."""
    if first.empty or second.empty:
        return None
    points = float(first.mean() - second.mean())
    groups = [each for _, each in of.groupby(level="method") if len(each) > 1]
    df = sum(len(each) - 1 for each in groups)
    if min(len(first), len(second)) < 2 or not df:
        return Difference(points, float("nan"))
    variance = sum(float(each.var(ddof=1)) * (len(each) - 1) for each in groups) / df
    error = sqrt(variance * (1 / len(first) + 1 / len(second)))
    return Difference(points, 2 * float(t.sf(abs(points) / error, df)) if error > 0 else float(points == 0))


def overall(values: pd.Series) -> Difference:
    """The mean over all networks, by training and seed, for other seeds of the same trainings."""
    groups = [each for _, each in values.groupby(level="method") if len(each) > 1]
    df, points = sum(len(each) - 1 for each in groups), float(values.mean())
    if not df:
        return Difference(points, float("nan"))
    error = sqrt(sum(float(each.var(ddof=1)) * (len(each) - 1) for each in groups) / df / len(values))
    return Difference(points, 2 * float(t.sf(abs(points) / error, df)) if error > 0 else float(points == 0))


def spread(table: pd.DataFrame, group: str = "near") -> pd.Series:
    """Near AUROC of each training's published score, by training and seed."""
    own = table["method"].map(OWN).fillna("msp")
    chosen = table[(table["detector"] == own) & (table["group"] == group)]
    return chosen.groupby(["method", "seed"])["auroc"].mean()


def trainings(table: pd.DataFrame, first: tuple[str, str], second: tuple[str, str], group: str) -> Difference | None:
    """Two (training, score) pairs; paired where the training is one."""
    one, other = networks(table, *first, group), networks(table, *second, group)
    if first[0] == second[0]:
        return paired(one, other)
    return between(table, one, other, spread(table, group))


def worded(found: Difference | None, name: str) -> str:
    """One comparison in words."""
    if found is None:
        return f"{name}: not yet run"
    if np.isnan(found.p):
        return f"{name}: {found.points:+.2f} with one network"
    return f"{name}: {found.points:+.2f} (p = {found.p:.2g})"


def all_of(found: dict[str, Difference | None], wanted: int) -> Verdict:
    """Holds if every comparison has the wanted sign beyond noise, and does not if one has the other."""
    signs = [0 if each is None else each.sign for each in found.values()]
    word = FAILS if -wanted in signs else HOLDS if signs and set(signs) == {wanted} else UNKNOWN
    return Verdict(word, "; ".join(worded(each, name) for name, each in found.items()))


def most_of(found: dict[str, Difference | None], wanted: int) -> Verdict:
    """Holds if more than half of the comparisons have the wanted sign beyond noise; does not if they have the other."""
    signs = [0 if each is None else each.sign for each in found.values()]
    right, wrong = (2 * signs.count(sign) > len(signs) for sign in (wanted, -wanted))
    word = HOLDS if right else FAILS if wrong else UNKNOWN
    return Verdict(word, "; ".join(worded(each, name) for name, each in found.items()))


def rectifiers_are_weak(table: pd.DataFrame) -> Verdict:
    found = {name: trainings(table, ("CE", name), ("CE", "msp"), "near") for name in ("react", "ash")}
    return all_of(found, -1)


def neighbours_and_turns_are_strong(table: pd.DataFrame) -> Verdict:
    found = {
        "KNN above MSP": trainings(table, ("CE", "knn"), ("CE", "msp"), "near"),
        "RotPred above MSP": trainings(table, ("RotPred", "rotpred"), ("CE", "msp"), "near"),
    }
    return all_of(found, 1)


def augmentation_helps(table: pd.DataFrame, group: str = "near") -> Verdict:
    found = {name: trainings(table, (name, "msp"), ("CE", "msp"), group) for name in AUGMENTATIONS}
    return most_of(found, 1)


def augmentation_helps_under_shift(table: pd.DataFrame) -> Verdict:
    return augmentation_helps(table, "fs-near")


def gain_is_amplified(table: pd.DataFrame) -> Verdict:
    """Whether the gain of an augmentation is larger with ASH than with MSP."""
    found: dict[str, Difference | None] = {}
    both = [networks(table, name, score) for name in ("CE",) for score in ("ash", "msp")]
    plain = (both[0] - both[1]).dropna()
    for name in AUGMENTATIONS:
        gap = (networks(table, name, "ash") - networks(table, name, "msp")).dropna()
        gaps = pd.concat({"CE": plain, name: gap}, names=["method", "seed"])
        found[name] = between(table, gap, plain, gaps)
    return most_of(found, 1)


def pairs_of(table: pd.DataFrame, group: str) -> pd.Series:
    """Mean AUROC of each (training, score) pair and network."""
    return table[table["group"] == group].groupby(["method", "detector", "seed"])["auroc"].mean()


def near_is_harder(table: pd.DataFrame) -> Verdict:
    near, far = pairs_of(table, "near"), pairs_of(table, "far")
    both = pd.DataFrame({"near": near, "far": far}).dropna()
    if both.empty:
        return Verdict(UNKNOWN, "no far sets in the table")
    means = both.groupby(level=["method", "detector"]).mean()
    easier = int((means["far"] > means["near"]).sum())
    by_network = (both["far"] - both["near"]).groupby(level=["method", "seed"]).mean()
    found = overall(by_network)
    rank = float(spearmanr(means["near"], means["far"]).statistic) if len(means) > 2 else float("nan")
    verdict = all_of({f"far above near for {easier} of {len(means)} pairs; on average": found}, 1)
    word = verdict.word if rank > 0 or verdict.word != HOLDS else UNKNOWN
    return Verdict(word, f"{verdict.reason}; Spearman {rank:.2f} over pairs; our far sets are not the published ones")


def training_excels(table: pd.DataFrame) -> Verdict:
    """RotPred and LogitNorm against the best score of plain networks, chosen on the same images."""
    found: dict[str, Difference | None] = {}
    for group in ("near", "far"):
        means = pairs_of(table[table["method"] == "CE"], group).groupby(level="detector").mean()
        if means.empty:
            continue
        best = str(means.idxmax())
        for name in ("RotPred", "LogitNorm"):
            pair = (name, OWN.get(name, "msp"))
            found[f"{name} above {best}, {group}"] = trainings(table, pair, ("CE", best), group)
    return all_of(found, 1)


def outliers_help_where_alike(table: pd.DataFrame) -> Verdict:
    found: dict[str, Difference | None] = {}
    plain = networks(table, "CE", "msp", HELD)
    for name in EXPOSED:
        if name in set(table["method"]):
            own = networks(table, name, OWN.get(name, "msp"))
            found[f"{name} above CE, near sets without the classes learnt"] = between(table, own, plain, spread(table))
    if not found:
        return Verdict(UNKNOWN, f"not yet run: {', '.join(EXPOSED)}, with outliers whose classes are no test's")
    near = most_of(found, 1)
    rest = [name for name in set(table["method"]) if name not in EXPOSED]
    far = {name: spread(table, "far").get(name, pd.Series(dtype=float)).mean() for name in (*rest, *EXPOSED)}
    best = max((name for name in far if not np.isnan(far[name])), key=lambda name: far[name], default="none")
    return Verdict(near.word, f"{near.reason}; the best on far sets is {best}")


def early_features_see_low_levels(table: pd.DataFrame) -> Verdict:
    rows = table[(table["method"] == "CE") & (table["detector"] == "mds_ensemble")]
    if rows.empty or "mnist" not in set(rows["set"]):
        return Verdict(UNKNOWN, "not yet run: mds_ensemble with MNIST among the far sets")
    by_set = rows.groupby(["set", "seed"])["auroc"].mean()
    found = {f"MNIST above {name}": paired(by_set["mnist"], by_set[name]) for name in set(rows["set"]) - {"mnist"}}
    return all_of(found, 1)


def accuracy_falls_little(table: pd.DataFrame) -> Verdict:
    """Whether most trainings are within one point of cross-entropy's accuracy, by two one-sided tests."""
    accuracy = table.groupby(["method", "seed"])["accuracy"].first()
    if "CE" not in accuracy.index.get_level_values("method"):
        return Verdict(UNKNOWN, "not yet run: CE")
    groups = [each for _, each in accuracy.groupby(level="method") if len(each) > 1]
    df = sum(len(each) - 1 for each in groups)
    words, within, beyond = [], 0, 0
    for name in sorted(set(accuracy.index.get_level_values("method")) - {"CE"}):
        found = between(table, accuracy[name], accuracy["CE"], accuracy)
        assert found is not None, "both have networks"
        words.append(worded(found, name))
        if np.isnan(found.p):
            continue
        variance = sum(float(each.var(ddof=1)) * (len(each) - 1) for each in groups) / df
        reach = float(t.isf(ALPHA, df)) * sqrt(variance * (1 / len(accuracy[name]) + 1 / len(accuracy["CE"])))
        within += abs(found.points) + reach < WITHIN
        beyond += abs(found.points) - reach > WITHIN
    many = len(words) >= FEWEST
    word = HOLDS if many and 2 * within > len(words) else FAILS if many and 2 * beyond > len(words) else UNKNOWN
    counted = f"{within} of {len(words)} within {WITHIN:g} point, {beyond} beyond (at least {FEWEST} trainings needed)"
    return Verdict(word, "; ".join([counted, *words]))


def shift_costs(table: pd.DataFrame) -> Verdict:
    near, full = pairs_of(table, "near"), pairs_of(table, "fs-near")
    both = pd.DataFrame({"near": near, "full": full}).dropna()
    if both.empty:
        return Verdict(UNKNOWN, "not yet run: corrupted ID images were no part of these rows")
    fall = (both["near"] - both["full"]).groupby(level=["method", "detector", "seed"]).mean()
    means = fall.groupby(level=["method", "detector"]).mean()
    large = int((means > 10).sum())
    by_network = fall.groupby(level=["method", "seed"]).mean()
    found = overall(by_network)
    name = f"lower for {int((means > 0).sum())} of {len(means)} pairs, by more than 10 for {large}; on average"
    return all_of({name: found}, 1)


def no_single_winner(tables: Tables) -> Verdict:
    """Whether the best pair on one ID set is beaten on another by the best pair there."""
    if len(tables) < 2:
        return Verdict(UNKNOWN, f"needs tables of two ID sets or more; there is {', '.join(tables) or 'none'}")
    pairs = {name: pairs_of(table, "near").groupby(level=["method", "detector"]) for name, table in tables.items()}
    best = {name: each.mean().idxmax() for name, each in pairs.items()}
    words = "; ".join(f"{name}: {pair[0]} with {pair[1]}" for name, pair in best.items())
    if len(set(best.values())) == 1:
        return Verdict(FAILS, f"one pair is best on all: {words}")
    found: dict[str, Difference | None] = {}
    for name, pair in best.items():
        for other, rival in best.items():
            if rival != pair:
                found[f"on {name}, above the best of {other}"] = trainings(tables[name], pair, rival, "near")
    beaten = all_of(found, 1)
    return Verdict(beaten.word, f"{words}; {beaten.reason}")


def on_one_network(observation: Observation, rows: pd.DataFrame) -> Verdict:
    """What the comparisons on one network say, for other images and for other OOD classes.

    Where an observation says that two numbers rise together, ``rank`` is their rank correlation over scores: it must be
    above 0.
    """
    found: dict[str, Difference | None] = {each.comparison: one_network(each) for each in rows.itertuples()}
    verdict = all_of({**found, **dict.fromkeys(observation.absent)}, observation.wanted)
    ranks = rows["rank"].dropna()
    if ranks.empty:
        return verdict
    word = UNKNOWN if verdict.word == HOLDS and ranks.min() <= 0 else verdict.word
    return Verdict(word, f"{verdict.reason}; Spearman {ranks.min():.2f} over scores")


def one_network(row: Any) -> Difference:
    """A comparison of ``openood_evidence.py``; its p value is the larger of those for images and for classes."""
    of_images = 2 * norm.sf(abs(row.points) / row.images_error)
    of_classes = 2 * t.sf(abs(row.points) / row.classes_error, row.classes_freedom)
    return Difference(float(row.points), float(max(of_images, of_classes)))


def candidates(rows: pd.DataFrame) -> set[str]:
    """The scores that may be the best on a network: none is above them beyond noise, over all pairs at 5 % together.

    ``comparison`` reads ``A above B``.
    """
    pairs = rows["comparison"].str.split(" above ", expand=True)
    names = set(pairs[0]) | set(pairs[1])
    level = ALPHA / (len(names) * (len(names) - 1))
    beaten = {
        below for below, row in zip(pairs[1], rows.itertuples()) if row.points > 0 and one_network(row).p <= level
    }
    return names - beaten


def winners(evidence: Tables) -> Verdict:
    """Whether some score may be the best on all networks."""
    best = {known: candidates(rows) for known, rows in evidence.items() if len(rows)}
    if len(best) < 2:
        return Verdict(UNKNOWN, f"needs networks of two ID sets or more; there is {', '.join(best) or 'none'}")
    both = set.intersection(*best.values())
    words = "; ".join(f"{known}: the best may be {', '.join(sorted(names))}" for known, names in best.items())
    if not both:
        return Verdict(HOLDS, f"{words}; none on all")
    alone = len(both) == 1 and all(names == both for names in best.values())
    return Verdict(FAILS if alone else UNKNOWN, f"{words}; on all may be {', '.join(sorted(both))}")


WINNERS = "winners"
LARGE = "ImageNet-200 and ImageNet-1K"
OBSERVATIONS = (
    Observation("No method wins on all benchmarks", across=no_single_winner, evidence=WINNERS, imagenet=LARGE),
    Observation("ReAct and ASH, strong on ImageNet, are not on CIFAR", rectifiers_are_weak, evidence="rectifiers",
                wanted=-1, imagenet="their strength"),
    Observation("KNN and RotPred are strong on small sets, not on large ones", neighbours_and_turns_are_strong,
                evidence="neighbours", absent=("RotPred above MSP",), imagenet="the large ones"),
    Observation("Augmentation helps detection", augmentation_helps),
    Observation("The gain of augmentation is larger with a strong score", gain_is_amplified),
    Observation("Near-OOD is harder than far-OOD, and both rise together", near_is_harder, evidence="far"),
    Observation("Vision transformers do not beat ResNets", imagenet="all of it: networks of ImageNet-1K"),
    Observation("Training methods excel on small sets", training_excels, imagenet="that they do not on large ones"),
    Observation("Post-hoc scores are best at scale", imagenet="all of it: ImageNet-1K"),
    Observation("Outlier data help where test outliers are like them", outliers_help_where_alike),
    Observation("Early features see only low-level differences", early_features_see_low_levels,
                evidence="early"),
    Observation("Training methods cost at most a point of accuracy", accuracy_falls_little),
    Observation("Covariate shift lowers near-OOD AUROC", shift_costs, evidence="shift",
                imagenet="more than 10 points on ImageNet-1K"),
    Observation("Augmentation helps under covariate shift too", augmentation_helps_under_shift),
    Observation("DINOv2 beats supervised networks, CLIP does far-OOD", imagenet="all of it: networks of ImageNet-1K"),
)  # fmt: skip
