"""The page of ``evg_table.py``: tables, six points, orders, what differs, what was not run."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evg_claims import (
    HOLDS,
    NOT,
    OPEN,
    Cells,
    Claim,
    Estimate,
    auroc_of,
    claims,
    difference,
    read_cells,
    spearman_orders,
)
from evg_rows import KINDS, PROVEN, ROWS, SETS, VARIED, Row
from oodscope.base.files import write_text

QUESTION = """\
**Question.** Do detectors that are trained here in compact form fail where those of the paper (arXiv 2208.10940) fail,
when a search picks the variation of an outlier that they take for in-distribution?"""

WHOLE = """\
**Command.** `OODSCOPE_DATA=path/to/packs python benchmarks/evg_table.py --output FOLDER --minutes 9.5
--write docs/results/evg-table.md`, again and again until it says `done`."""

OTHER = """\
**Command.** `OODSCOPE_DATA=path/to/packs python benchmarks/evg_table.py --form {name} --output FOLDER
--write docs/results/evg-table-{name}.md`; a stopped call goes on.

**Form.** {words}. The whole study is `evg-table.md`."""

POINTS = """\
Bars are chosen from the paper's table, in kind; a part *holds* if its 95 % interval lies on its side of the bar. Drops
are paired by source image."""

ORDERS = """\
Spearman's correlation of clean and attacked AUROC over the strong rows; intervals from source images and search seeds
drawn again, the rows fixed. The paper, over its 11: SVHN l-inf -.278, affine .419, color .779, GAN .806."""

SAID = (
    *("machine", "date", "plain", "learnt_outliers", "form", "words", "network", "id_test", "learnt_svhn"),
    "learnt_scenes",
)
"""What the study says of itself."""


def write_page(folder: Path, path: Path) -> None:
    """Write the page from what the folder holds."""
    cells = read_cells(folder)
    failed = json.loads((folder / "failed.json").read_text()) if (folder / "failed.json").exists() else {}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, page(cells, failed, facts_of(folder)))


def facts_of(folder: Path) -> dict[str, Any]:
    """What the units say of themselves, and how long each network took."""
    units = [np.load(file) for file in (folder / "units").glob("*.npz")]
    minutes = {}
    for file in (folder / "networks").glob("*/training.json"):
        history = json.loads(file.read_text())["history"]
        minutes[file.parent.name] = sum(epoch["seconds"] for epoch in history) / 60
    described = folder / "study.json"
    said = json.loads(described.read_text()) if described.exists() else {}
    return {
        "chains": max((int(unit["chains"]) for unit in units), default=0),
        "budget": max((int(unit["budget"]) for unit in units), default=0),
        "search_minutes": sum(float(unit["seconds"]) for unit in units) / 60,
        "training_minutes": minutes,
        **{name: said.get(name, "") for name in SAID},
    }


def record_minutes(folder: Path, path: Path) -> None:
    """Add the minutes of recipes that were trained with their default settings to those that ``list`` prints."""
    facts = facts_of(folder)
    if facts["words"] or "NVIDIA" not in facts["machine"]:
        raise SystemExit("--record-minutes: only the whole study on a GPU says how long recipes take there")
    known, measured = json.loads(path.read_text(encoding="utf-8")), facts["training_minutes"]
    plain = {row.recipe: measured[row.name] for row in ROWS if row.name in measured and not row.stages[-1][1]}
    known["minutes"] |= {name: round(minutes, 2) for name, minutes in plain.items()}
    write_text(path, json.dumps(known, indent=1, sort_keys=True) + "\n")


def answer(cells: Cells) -> str:
    """One sentence of all points."""
    made = claims(cells)
    counts = {verdict: sum(claim.verdict == verdict for claim in made) for verdict in (HOLDS, NOT, OPEN)}
    published = [row for row in ROWS if row.published]
    complete = sum(all((row.name, name, kind) in cells for name in SETS for kind in VARIED) for row in published)
    return (
        f"Of the six points of the paper's table, {counts[HOLDS]} hold, {counts[NOT]} do not, and on {counts[OPEN]} "
        f"these runs cannot say; {complete} of {len(published)} rows are complete. Population: these trained networks "
        "(one training seed), source images and search seeds drawn again."
    )


def page(cells: Cells, failed: Mapping[str, str], facts: Mapping[str, Any]) -> str:
    """The whole page."""
    rows = [row for row in ROWS if row.name != "plain"]
    parts = [
        "# Table 2 of evaluation via generation, in kind",
        QUESTION,
        f"**Answer.** {answer(cells)}",
        OTHER.format(name=facts["form"], words=facts["words"]) if facts["words"] else WHOLE,
        _effort(cells, facts),
        *(_table(cells, rows, name) for name in SETS),
        "## The six points",
        POINTS,
        "\n".join(_claim_lines(claims(cells))),
        "## Orders",
        ORDERS,
        "\n".join(_order_lines(cells)),
        "## Proven, and released",
        "\n".join(_beside_lines(cells)),
        "## What differs from the paper",
        "\n".join(_difference_lines(cells, facts)),
        "## Not run",
        "\n".join(_missing_lines(cells, failed)) or "Nothing is missing.",
    ]
    if not facts["words"]:  # of another form there is no estimate, and its machine may do more than this
        parts += ["## GPU minutes of training", "\n".join(_minute_lines(facts["training_minutes"]))]
    return "\n\n".join(parts) + "\n"


def _effort(cells: Cells, facts: Mapping[str, Any]) -> str:
    if not facts["chains"]:
        return "**Machine.** None yet: nothing was run."
    gradients = " (a tenth with gradients)" if _ran(cells, kinds=("linf",)) else ""
    minutes = "" if facts["words"] else f", {facts['search_minutes']:.0f} minutes in all"
    return (
        f"**Machine.** {facts['machine']}. **Date.** {facts['date']}. {facts['chains']} source images, "
        f"{facts['budget']} evaluations each{gradients}{minutes}."
    )


def _ran(cells: Cells, rows: Sequence[str] = (), kinds: Sequence[str] = ()) -> bool:
    """Whether a page speaks of these rows or variations: one that holds nothing yet speaks of all."""
    found = ((not rows or row in rows) and (not kinds or kind in kinds) for row, _, kind in cells)
    return not cells or any(found)


def _difference_lines(cells: Cells, facts: Mapping[str, Any]) -> Iterator[str]:
    """What is another than in the paper, as far as it was run."""
    own = [row.name for row in ROWS if row.own]
    yield "- Compact networks trained here with one seed, not the authors' weights."
    if _ran(cells, [row.name for row in ROWS if row.name not in (*own, "good")]):
        network = facts.get("network") or "ResNet-18"
        yield f"- {network} where the paper has AllConv, DenseNet, ResNet-34, ResNet-50 and WRN-28-10."
    if _ran(cells, [row.name for row in ROWS if row.outliers]):
        many = f"{facts['learnt_outliers']:,} images of " if facts["learnt_outliers"] else ""
        yield (
            f"- Outliers to learn from: {many}CIFAR-100 without the superclasses that show CIFAR-10's classes, not 80 "
            "Million Tiny Images, which is withdrawn."
        )
    tested = f"{facts['id_test']:,} of OpenOOD's 9,000" if facts.get("id_test") else "OpenOOD's 9,000"
    yield f"- SUN scenes in place of CelebA; ID test images are {tested}, SVHN digits are cropped anew."
    if _ran(cells, kinds=("linf",)):
        yield "- l-inf is read from white-box gradients (APGD); a search without gradients, where run, stands beside."
    if _ran(cells, kinds=VARIED[1:]):
        yield (
            "- affine, color and generator by the portfolio of samplers at equal total evaluations on canonical "
            "scores, not by Metropolis-Hastings at T = 1 alone."
        )
    if _ran(cells, kinds=("gan",)):
        few = (
            f": {facts['learnt_svhn']:,} digits, {facts['learnt_scenes']:,} scenes" if facts.get("learnt_svhn") else ""
        )
        yield f"- Generators learn from the half that is not attacked{few}."
    if _ran(cells, ["md"]):
        yield "- md was fitted with digits of SVHN, as in the paper: its SVHN column has seen the test source."
    if facts["plain"]:
        yield (
            f"- The plain network is `{facts['plain']}`, a ResNet-18 of 100 epochs that was trained before, in place "
            "of one of 40 epochs: rows that fine-tune start from it, and md reads it."
        )


def _table(cells: Cells, rows: Sequence[Row], name: str) -> str:
    kinds = ("clean", *KINDS)
    head = [f"## AUROC on {'SVHN' if name == 'svhn' else 'SUN scenes'}", "", f"| row | {' | '.join(kinds)} |"]
    if name == "svhn":
        head[0] += ", the paper's value in parentheses"
    lines = [*head, "|---|" + "---|" * len(kinds)]
    for row in rows:
        found = [_number(auroc_of(cells, row.name, name, kind)) for kind in kinds]
        if name == "svhn" and row.published:
            found = [f"{text} ({value:.3f})" for text, value in zip(found, row.published)] + found[len(row.published) :]
        mark = " (saw SVHN)" if row.peeks else " (outliers)" if row.outliers else ""
        lines.append(f"| {row.name}{mark} | {' | '.join(found)} |")
    return "\n".join(lines)


def _number(found: Estimate | None) -> str:
    return "–" if found is None else str(found)


def _claim_lines(made: Sequence[Claim]) -> Iterator[str]:
    yield "| point | verdict | numbers |"
    yield "|---|---|---|"
    for claim in made:
        details = "; ".join(f"{words} ({verdict})" for words, verdict in claim.parts)
        yield f"| {claim.words} | **{claim.verdict}** | {details} |"


def _order_lines(cells: Cells) -> Iterator[str]:
    yield "| set | variation | Spearman |"
    yield "|---|---|---|"
    for name in SETS:
        orders = spearman_orders(cells, name)
        for kind in VARIED:
            yield f"| {name} | {kind} | {_number(orders.get(kind))} |"


def _beside_lines(cells: Cells) -> Iterator[str]:
    """What interval bounds prove of GOOD, and what the attack in ROWL's training is worth."""
    for name in SETS:
        proven, found = auroc_of(cells, "good", name, PROVEN), auroc_of(cells, "good", name, "linf")
        attacked = "not run" if found is None else f"{found}"
        yield (
            f"- good on {name}: no attack within .01 brings its AUROC below "
            f"{_number(proven)} (interval bounds, all images of the half); white-box gradients reach {attacked}."
            if proven
            else f"- good on {name}: its proven AUROC is not run."
        )
    gap = difference(cells, "rowl", "rowl_released", "svhn", "linf")
    yield (
        "- rowl less rowl_released (what its released code trains, without a working attack), under l-inf on svhn, "
        f"paired by source image: {'not run' if gap is None else gap}."
    )


def _missing_lines(cells: Cells, failed: Mapping[str, str]) -> Iterator[str]:
    for row in ROWS:
        if row.name == "plain":
            continue
        missing = [
            f"{name} {kind}" for name in SETS for kind in ("clean", *KINDS) if (row.name, name, kind) not in cells
        ]
        for kind in ("clean", *KINDS):
            if reason := failed.get(f"{row.name} {kind}"):
                yield f"- {row.name}, {kind}: {reason}"
        if missing:
            yield f"- {row.name}: {'everything' if len(missing) == 2 * (1 + len(KINDS)) else ', '.join(missing)}"


def _minute_lines(minutes: Mapping[str, float]) -> Iterator[str]:
    yield "| row | measured | estimated |"
    yield "|---|---|---|"
    for row in ROWS:
        if row.stages:
            measured = f"{minutes[row.name]:.2f}" if row.name in minutes else "–"
            yield f"| {row.name} | {measured} | {row.minutes:g} |"
