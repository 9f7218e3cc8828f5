"""From the options of a command to a generated set on disk."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from oodscope.base.config import parse_declared
from oodscope.base.errors import UsageError
from oodscope.base.files import cache_root
from oodscope.cli.command import progress
from oodscope.cli.options import separated
from oodscope.data.generated.files import check_free
from oodscope.data.generated.record import GeneratedRecord
from oodscope.execution.progress import announce
from oodscope.generation.sets.estimate import estimate
from oodscope.generation.sets.making import make_set
from oodscope.generation.sets.plan import PAPER, Kind, SetPlan, default_architectures, default_epochs, default_weight
from oodscope.generation.sets.pool import frame_of
from oodscope.jobs.opening import IdSets, open_id
from oodscope.models.classifier.network import choose_device
from oodscope.models.zoo.efficientnet_lite import NAME as LITE0
from oodscope.models.zoo.efficientnet_lite import installed
from oodscope.report.page.generated_set import write_set_page
from oodscope.runs.generated.claims import RECOGNISED_NEAR

POOLED = 5
"""Images made for each one that is wanted."""

SEEDS = 1000
"""Members of the ensemble have the seeds from so many times the seed on: sets of two seeds share no network."""


@dataclass(frozen=True)
class Request:
    """What every command that writes a set is given; names are those of its options."""

    id: str
    val: str | None
    output: Path
    count: int | None
    pool: int | None
    ensemble: list[str] | None
    epochs: int | None
    flip: bool
    work: Path | None
    root: Path | None
    device: str
    seed: int
    yes: bool = False


HOUR = 3600.0


def write_set(request: Request, kind: Kind, paper: bool, **own: Any) -> None:
    """Make, write and show a set.

    Parameters
    ----------
    paper : take the paper's configuration for whatever is not given.
    own : what one command alone decides: keys of ``SetPlan``; None where it was not given.
    """
    check_free(request.output)
    sink = progress()
    sets = open_id(request.id, request.val, request.root, request.seed, sink)
    plan = declared_plan(request, kind, paper, own, sets)
    expected = estimate(plan, sets.train, request.device)
    announce(sink, expected)
    if expected.seconds > HOUR and not request.yes:
        raise UsageError(
            f"this takes {expected}, more than an hour: use a GPU, fewer --steps, --epochs or a smaller --ensemble"
            f"{', or --method recombination' if plan.kind == 'near' else ''}; or start it with --yes"
        )
    work, output = request.work or cache_root() / "generated", request.output
    places: dict[str, Any] = {"work": work, "device": request.device, "progress": sink}
    made = make_set(plan, sets.train, sets.val, output, redrawn=sets.test, **places).record
    _show(plan, made, output, write_set_page(output))


def declared_plan(request: Request, kind: Kind, paper: bool, own: dict[str, Any], sets: IdSets) -> SetPlan:
    """The plan of a request: what was given, then the paper's if it is asked for, then the defaults of the distance."""
    wanted, frame = request.count or len(sets.test), frame_of(sets.train)
    epochs = request.epochs or default_epochs(len(frame.mean))
    given = {key: value for key, value in own.items() if value is not None}
    preset = PAPER[kind] if paper else {}
    declared: dict[str, Any] = {
        **preset,
        **given,
        "kind": kind,
        "count": wanted,
        "pool": request.pool or POOLED * wanted,
        "seed": request.seed,
        "ensemble": {
            "epochs": epochs,
            "warmup_epochs": min(1, epochs - 1),
            "seed": SEEDS * request.seed,
            "augment": {"pad": frame.size // 8, "flip": request.flip},
            "precision": precision(request.device),
        },
        "architectures": separated(request.ensemble) or default_architectures(len(frame.mean)),
    }
    declared.setdefault("method", "gan" if kind == "shifted" else "recombination")
    # the distance and the disagreement are two axes only if they are of two networks
    declared.setdefault("perceptual", LITE0 if installed(LITE0) and len(frame.mean) == 3 else "ensemble")
    weight = {"lambda_perceptual": default_weight(declared["perceptual"], kind)}
    # the paper's choice for digits; a class-conditional one for colour
    network = {"network": "dcgan"} if kind == "near" and len(frame.mean) == 1 else {}
    declared[kind] = {**weight, **preset.get(kind, {}), **network, **given.get(kind, {})}
    if declared["method"] == "latent":
        declared.setdefault("lambda_perceptual", 1.0)
    return parse_declared(SetPlan, declared, f"generate {kind}")


def _show(plan: SetPlan, made: GeneratedRecord, output: Path, page: Path) -> None:
    pool, (low, high) = made.recipe["pool"], made.recipe["window"]
    typer.echo(f"window: mutual information from {low:.2f} to {high:.2f} nats")
    typer.echo(f"kept: {pool['kept']:,} of {pool['images']:,} images, {pool['chosen']:,} in the set")
    if plan.kind == "near":
        share, dropped = made.recipe["class seen by the ensemble"], made.recipe["dropped by class"]
        typer.echo(f"the ensemble still sees the class that they were made from in {100 * share:.1f} % of them")
        if plan.class_share < 1:
            inside = pool["kept"] + dropped
            typer.echo(f"dropped because their class is seen too often: {dropped:,} of {inside:,} in the window")
        if few := made.recipe["classes with few images"]:
            names = ", ".join(f"{name} {count}" for name, count in few.items())
            typer.echo(f"classes with few images: {names}; raise --pool")
        if share > RECOGNISED_NEAR:
            typer.echo("most are odd images of their class, not OOD: raise --pool, or set a higher --window")
    if len(made.files) < plan.count:
        typer.echo(f"fewer than the {plan.count:,} asked for: raise --pool above {pool['images']:,}")
    typer.echo(f"saved: {output} ({page})")


def numbers(given: list[str], option: str) -> list[float]:
    """Numbers, comma-separated, in one text or in several."""
    try:
        return [float(part) for part in separated(given)]
    except ValueError as error:
        raise UsageError(f"--{option} takes numbers, such as 0.5,1,2, not {','.join(given)!r}") from error


def trained(device: str, seed: int, flip: bool, **given: Any) -> dict[str, Any]:
    """The recipe of a generator: what was given, the rest as the recipe has it."""
    own = {name: value for name, value in given.items() if value is not None}
    return {**own, "seed": seed, "flip": flip, "precision": precision(device)}


def precision(device: str) -> str:
    """In which a device trains."""
    return "bf16-mixed" if choose_device(device).type == "cuda" else "32-true"


def two_numbers(text: str, option: str) -> list[float]:
    """Two numbers, comma-separated."""
    try:
        first, second = (float(part) for part in text.split(","))
    except ValueError as error:
        raise UsageError(f"--{option} takes two numbers, such as 0.2,0.6, not {text!r}") from error
    return [first, second]
