"""Make the page of generated sets from saved studies; every sentence is made from numbers and names its population.

    python benchmarks/generated_page.py cifar10=WORK/cifar10/final mnist=WORK/mnist/study --write PAGE.md

A study is the folder that ``generated_study.py`` or ``oodscope generate judge`` saved. Data sets without one are named.
Measurements of every study go to ``data/generated-NAME.parquet`` beside the page.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from oodscope.base.files import write_text
from oodscope.document.claim import count_claims
from oodscope.metrics.generated.idness import BINS, class_checks, hardness_by_idness
from oodscope.metrics.metric import MEAN
from oodscope.runs.generated.claims import claims, class_report, judges_recognise
from oodscope.runs.generated.ranks import ALL, INDEPENDENT, WITHIN, RankAgreement, rank_agreements
from oodscope.runs.generated.run import GeneratedStudy
from oodscope.runs.generated.sanity import SetCheck
from oodscope.runs.generated.table import calibration_table, separation_table

SETTINGS, LEAST = "settings.json", 200
"""Beside a study: how its sets were made; and the images that a class should have left."""

WANTED = ("cifar10", "cifar100", "mnist")
COMMAND = "python benchmarks/generated_study.py DATASET --work WORK --output OUT --device cuda --minutes 30"


def percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}"


def answer(studies: Mapping[str, GeneratedStudy]) -> str:
    """What holds, in one line for each data set: what judges see, hardness at equal ID-ness, orders."""
    if not studies:
        return "Not run yet."
    lines = []
    for name, study in studies.items():
        found = [each for each in claims(study) if each.text.startswith("near")]
        told = {
            "judges see the class in at most half of the near images": "judges see the class that an image came from",
            "no class is seen too often": "no class is seen more than twice",
            "harder at equal ID-ness": "where judges do not see the class",
            "detectors in the order of the real sets": "orders detectors as",
        }
        words = []
        for short, text in told.items():
            answers = [each.answer for each in found if text in each.text]
            if answers:
                words.append(f"{short}: {', '.join(dict.fromkeys(answers))}")
        lines.append(
            f"{name} ({len(study.networks)} networks; {count_claims(claims(study)).rstrip('.')}): {'; '.join(words)}."
        )
    return " ".join(lines)


def command(settings: Mapping[str, Any]) -> str:
    """The command that made a study, from the file beside it."""
    named = {"training images": "train_images"}
    words = [
        f"--{named.get(key, key).replace('_', '-')} {','.join(map(str, value)) if isinstance(value, list) else value}"
        for key, value in settings.items()
        if key not in ("dataset", "sets", "left out", "device", "date") and value is not None
    ]
    return f"python benchmarks/generated_study.py {settings['dataset']} {' '.join(words)}"


def redrawn_words(settings: Mapping[str, Any]) -> str:
    """How the shifted set was made, or that there is none: a generator that has collapsed writes none."""
    weights = f"at λ_p = {settings['shifted_perceptual']:g}, λ_y = {settings['lambda_label']:g}"
    if "shifted" in settings["sets"]:
        return f"redrawn by {settings['shifted_steps']:,} steps {weights}"
    return f"no shifted set came of {settings['shifted_steps']:,} steps {weights}"


def made_words(settings: Mapping[str, Any]) -> list[str]:
    """How the sets were made, from the file beside the study: population, weights, what was dropped."""
    if not settings:
        return []
    weights = ", ".join(f"{each:g}" for each in settings["lambdas"])
    lines = [
        f"Made from {settings['training images']:,} training images: networks of {settings['epochs']} epochs, a plain "
        f"generator of {settings['steps']:,} steps of {settings['batch_size']}, {settings['fine_steps']:,} more for "
        f"each λ_s of {weights} at λ_p = {settings['lambda_perceptual']:g} (distance: {settings['perceptual']}); "
        f"{redrawn_words(settings)}. Machine: {settings['device']}, {settings['date']}. Command: "
        f"`{command(settings)}`.",
        "",
    ]
    for name, made in settings["sets"].items():
        if "pool" not in made:
            continue
        pool, dropped = made["pool"], made.get("dropped by class", 0)
        inside, counts = pool["kept"] + dropped, made["images of a class"]
        fewest, enough = min(counts.values()), sum(count >= LEAST for count in counts.values())
        lines.append(
            f"- **{name}**: window {made['window'][0]:.2f} to {made['window'][1]:.2f} nats; {inside:,} of "
            f"{pool['images']:,} images within it, {100 * dropped / max(inside, 1):.1f} % of them dropped because "
            f"their class is seen too often, {pool['chosen']:,} in the set; fewest of a class {fewest:,}, at least "
            f"{LEAST} in {enough} of {len(counts)} classes."
        )
    lines += [f"- Left out: {reason} ({', '.join(names)})." for reason, names in settings.get("left out", {}).items()]
    return [*lines, ""]


def shifted_words(study: GeneratedStudy) -> list[str]:
    """What calibration shows, and what the choice of images has decided beforehand."""
    found, lines = study.calibration(), []
    for name in study.sanity.shifted():
        pairs = [
            (found[each, name].value, found[each, "id_test"].value)
            for each in study.networks
            if (each, name) in found and (each, "id_test") in found
        ]
        seen = study.sanity.of(name).preserved
        if pairs and seen is not None:
            above = sum(ours > known for ours, known in pairs)
            lines.append(
                f"- **{name}**: judges still see the class in {percent(seen)} %; ECE above that of ID test for {above} "
                f"of {len(pairs)} networks, {percent(float(np.mean([ours for ours, _ in pairs])))} % against "
                f"{percent(float(np.mean([known for _, known in pairs])))} % on average."
            )
    stages = "--stage shifted,judge,final"
    return lines or [f"**Not run yet**: no shifted set in this study. Go on with `{COMMAND} {stages}`."]


def set_table(study: GeneratedStudy) -> list[str]:
    """Closeness and what judges see, set by set."""
    lines = [
        "| set | role | images | KID to training | FD∞ | class seen by judges |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for each in study.sanity.sets:
        kernel = "" if each.kernel is None else "{:.4f} [{:.4f}–{:.4f}]".format(*each.kernel)
        infinite = "" if each.frechet_infinity is None else f"{each.frechet_infinity:.3g}"
        seen, ends = each.preserved, each.preserved_interval
        share = "" if seen is None or ends is None else f"{percent(seen)} [{percent(ends.low)}–{percent(ends.high)}]"
        made = " (generated)" if each.name in study.sanity.generated else ""
        lines.append(f"| {each.name}{made} | {each.role} | {each.n:,} | {kernel} | {infinite} | {share} |")
    return lines


def class_table(study: GeneratedStudy) -> list[str]:
    """Every class of every near set, beside its bound."""
    if not study.real:
        return ["No real OOD set to compare classes with."]
    control, lines = study.real[0], []
    for name in study.sanity.near():
        checks = class_report(study, name, control)
        if checks:
            failing = [
                f"{study.sanity.class_names[each.label]} {percent(each.share)} % (at most {percent(each.bound)})"
                for each in checks
                if each.passes is False
            ]
            fewest = min(each.n for each in checks)
            lines.append(
                f"- **{name}**: {len(checks) - len(failing)} of {len(checks)} classes pass; fewest images of a class "
                f"{fewest:,}. Seen too often: {', '.join(failing[:12]) or 'none'}."
            )
    return lines or ["Images were not kept one by one."]


def controls(study: GeneratedStudy) -> list[str]:
    """ID test and the half-ID mixture must fail the check by class, real outliers must pass it."""
    if not study.real:
        return ["No real OOD set: no control."]
    real = study.sanity.of(study.real[0])
    id_test = next(each for each in study.sanity.sets if each.role == "id_test")
    taken = np.repeat(np.arange(len(real.taken_for)), real.taken_for)
    source, judged = _unrolled(id_test)
    made_up = np.random.default_rng(0).integers(0, len(real.taken_for), len(taken))
    half = min(len(source), len(taken))
    rng = np.random.default_rng(1)
    rows, others = rng.permutation(len(source))[:half], rng.permutation(len(taken))[:half]
    mixed = (np.concatenate([source[rows], made_up[others]]), np.concatenate([judged[rows], taken[others]]))
    cases = {
        "ID test": (source, judged, False),
        "half ID test, half real outliers": (*mixed, False),
        f"{real.name} with random source classes": (made_up, taken, True),
    }
    lines = []
    for name, (labels, seen, wanted) in cases.items():
        checks = [each for each in class_checks(labels, seen, taken, len(real.taken_for)) if each.passes is not None]
        passing = sum(bool(each.passes) for each in checks)
        good = passing == len(checks) if wanted else passing < len(checks) / 2
        must = "must pass" if wanted else "must fail"
        lines.append(
            f"- {name} ({must}): {passing} of {len(checks)} classes pass: {'as it must' if good else 'WRONG'}."
        )
    return lines


def _unrolled(check: SetCheck) -> tuple[np.ndarray, np.ndarray]:
    """Source and judged classes of the images of a confusion matrix."""
    table = np.array(check.confusion)
    pairs = [(i, j) for i in range(len(table)) for j in range(len(table)) for _ in range(table[i, j])]
    source, judged = np.array(pairs).T
    return source, judged


def hardness_table(study: GeneratedStudy) -> list[str]:
    """Mean AUROC over networks and detectors, by the probability that judges give the source class."""
    heads = [f"{low:g}–{high:g}" for low, high in BINS]
    lines = [f"| set | {' | '.join(heads)} |", "| --- |" + " ---: |" * len(heads)]
    for name in study.sanity.near():
        check = study.sanity.of(name)
        if not check.p_source:
            continue
        curves = []
        for result in study.results:
            for detector in result.scores.detectors:
                id_scores = result.scores.scores(detector, role="id_test")
                own = result.scores.scores(detector, set=name)
                curve = hardness_by_idness(id_scores, own, np.array(check.p_source))
                curves.append([np.nan if each is None else each.value for each in curve.values()])
        counted = [np.array(each)[~np.isnan(each)] for each in np.array(curves).T]
        means = [each.mean() if len(each) else np.nan for each in counted]
        lines.append(f"| {name} | " + " | ".join("–" if np.isnan(each) else percent(each) for each in means) + " |")
    for other in study.real:
        values = [row.value for (_, _, place), row in study.separation("auroc").items() if place == other]
        lines.append(f"| {other} (real, all images) | {percent(float(np.mean(values)))} |" + " |" * (len(heads) - 1))
    return lines


def orders(study: GeneratedStudy) -> list[str]:
    """Kendall's τ of every generated set with every real one: of all networks, and the range over single ones."""
    found = {(each.generated, each.real, each.scope): each for each in rank_agreements(study)}
    # the mean of one real set is that set
    pairs = [
        (made, real)
        for made, real in dict.fromkeys((made, real) for made, real, _ in found)
        if real != MEAN or len(study.real) > 1
    ]
    if not pairs:
        return ["No orders to compare."]
    scopes = (ALL, INDEPENDENT, WITHIN)
    lines = [
        "Kendall's τ between AUROC on the generated and on the real set, over rows of one detector and network, with "
        "95 % intervals. *Single networks*: lowest and highest τ over the detectors of one.",
        "",
        f"| generated | real | {' | '.join(scopes)} | single networks |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for made, real in pairs:
        cells = [tau_words(found.get((made, real, scope))) for scope in scopes]
        single = [found[made, real, name].tau for name in study.networks if (made, real, name) in found]
        cells.append(f"{min(single):.2f} to {max(single):.2f} ({len(single)})" if single else "")
        lines.append(f"| {made} | {real} | {' | '.join(cells)} |")
    return lines


def tau_words(found: RankAgreement | None) -> str:
    """One cell of the table of orders."""
    if found is None:
        return ""
    if found.interval is None:
        return f"{found.tau:.2f} ({found.rows} rows)"
    low, high = found.interval.low, found.interval.high
    return f"{found.tau:.2f} [{low:.2f}, {high:.2f}] ({found.rows} rows, {found.over} redrawn)"


def section(name: str, study: GeneratedStudy, settings: Mapping[str, Any]) -> list[str]:
    fit = judges_recognise(study)
    lines = [
        f"## {name}",
        "",
        f"Networks under test: {', '.join(study.networks)}. Judges: {', '.join(study.sanity.judges)}",
    ]
    lines[-1] += f", who recognise {percent(fit)} % of the ID test images. Makers: {', '.join(study.sanity.makers)}."
    lines += ["", *made_words(settings)]
    lines += [f"Closeness is judged in features of {study.sanity.features or 'no network'}.", "", *set_table(study), ""]
    lines += ["### Class by class", "", *class_table(study), "", "### Controls", "", *controls(study), ""]
    lines += [
        "### Hardness at equal ID-ness",
        "",
        "Mean AUROC in percent over networks and detectors, by the probability ",
    ]
    lines[-1] += "that judges give the class an image was made from."
    lines += ["", *hardness_table(study), "", "### Claims", ""]
    lines += [f"- **{each.answer}**: {each.text}. {each.evidence}." for each in claims(study)]
    lines += ["", "### Orders of detectors", "", *orders(study), "", "### Separation", ""]
    lines += [separation_table(study).render("markdown"), "", "### Calibration", ""]
    lines += [calibration_table(study).render("markdown"), "", "### Shifted sets", ""]
    return [*lines, *shifted_words(study), ""]


def page(studies: Mapping[str, GeneratedStudy], settings: Mapping[str, Mapping[str, Any]] | None = None) -> str:
    """The whole page.

    Parameters
    ----------
    settings : how the sets of each study were made, where that is known.
    """
    missing, told = [name for name in WANTED if name not in studies], settings or {}
    lines = [
        "# Generated near and shifted sets",
        "",
        "**Question.** Are generated sets what they should be, how hard are they at equal ID-ness, and do they order "
        "detectors as real sets do?",
        "",
        f"**Answer.** {answer(studies)}",
        "",
        f"**Command.** `{COMMAND}`, then `python benchmarks/generated_page.py DATASET=WORK/DATASET/final --write PAGE` "
        "(measurements: `data/generated-DATASET.parquet`)",
        "",
        f"**Machine.** {', '.join(dict.fromkeys(each['device'] for each in told.values())) or 'not recorded'}. "
        f"**Date.** {', '.join(dict.fromkeys(each['date'] for each in told.values())) or 'not recorded'}.",
        "",
    ]
    for name, study in studies.items():
        lines += section(name, study, told.get(name, {}))
    if missing:
        lines += [f"**Not run yet**: {', '.join(missing)}. Go on with `{COMMAND}`.", ""]
    lines += [
        "Outlier exposure on generated sets in four arms has [a page of its own](generated-exposure.md). The former "
        "study of CIFAR-10 and MNIST, of another design: [generated-former.md](generated-former.md).",
        "",
    ]
    return "\n".join([*lines, *DIFFERS]) + "\n"


DIFFERS: Sequence[str] = (
    "## What differs from the paper",
    "",
    "- Distances are the form of LPIPS on efficientnet-lite0 in the loss and closeness is judged on "
    "efficientnet-lite2; for grey digits both are the features of classifiers of digits, one of the makers in the loss "
    "and another recipe and seed judging. LPIPS itself needs weights of VGG-16 that are not at hand here.",
    "- One plain generator is fine-tuned for each weight, instead of a generator trained for each from the start.",
    "- Ensembles are of smaller networks (for digits of LeNet, a small plain network and WRN-10-1); judges and tested "
    "networks learnt by another recipe than the makers.",
    "- A class is thinned where the makers see it in more than half of its images.",
    "- What shifted images are filtered by decides what calibration can show: *free* has no filter, and no "
    "label is asked for in its choice; with λ_y > 0 the generator has still seen labels.",
    "- KID with block intervals instead of FID; FD∞ beside it.",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("studies", nargs="*", metavar="NAME=FOLDER")
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    named = dict(each.split("=", 1) for each in options.studies)
    files = {name: Path(folder).parent / SETTINGS for name, folder in named.items()}
    settings = {name: json.loads(path.read_text()) for name, path in files.items() if path.exists()}
    studies = {name: GeneratedStudy.load(Path(folder)) for name, folder in named.items()}
    text = page(studies, settings)
    if options.write is None:
        print(text)
        return
    write_text(options.write, text)
    for name, study in studies.items():
        rows = pd.concat([each.measurements.to_dataframe() for each in study.results])
        place = options.write.parent / "data" / f"generated-{name}.parquet"
        place.parent.mkdir(parents=True, exist_ok=True)
        rows.to_parquet(place, index=False)


if __name__ == "__main__":
    main()
