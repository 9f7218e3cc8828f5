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
from oodscope.generation.sets.making import make_set
from oodscope.generation.sets.plan import SetPlan
from oodscope.generation.sets.pool import frame_of
from oodscope.jobs.opening import open_id
from oodscope.models.classifier.network import choose_device
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
    epochs: int
    flip: bool
    work: Path | None
    root: Path | None
    device: str
    seed: int


def write_set(request: Request, **own: Any) -> None:
    """Make, write and show a set; ``own`` is what one command alone decides: keys of ``SetPlan``."""
    check_free(request.output)
    sink = progress()
    sets = open_id(request.id, request.val, request.root, request.seed, sink)
    wanted = request.count or len(sets.test)
    declared: dict[str, Any] = {
        **own,
        "count": wanted,
        "pool": request.pool or POOLED * wanted,
        "seed": request.seed,
        "ensemble": {
            "epochs": request.epochs,
            "warmup_epochs": min(1, request.epochs - 1),
            "seed": SEEDS * request.seed,
            "augment": {"pad": frame_of(sets.train).size // 8, "flip": request.flip},
            "precision": precision(request.device),
        },
    }
    if request.ensemble:
        declared["architectures"] = separated(request.ensemble)
    plan = parse_declared(SetPlan, declared, f"generate {declared['kind']}")
    work, output = request.work or cache_root() / "generated", request.output
    places: dict[str, Any] = {"work": work, "device": request.device, "progress": sink}
    made = make_set(plan, sets.train, sets.val, output, redrawn=sets.test, **places).record
    page, pool = write_set_page(output), made.recipe["pool"]
    low, high = made.recipe["window"]
    typer.echo(f"window: mutual information from {low:.2f} to {high:.2f} nats")
    typer.echo(f"kept: {pool['kept']:,} of {pool['images']:,} images, {pool['chosen']:,} in the set")
    if plan.kind == "near":
        share = made.recipe["class seen by the ensemble"]
        typer.echo(f"the ensemble still sees the class that they were made from in {100 * share:.1f} % of them")
        if share > RECOGNISED_NEAR:
            typer.echo("most are odd images of their class, not OOD: raise --pool, or set a higher --window")
    if len(made.files) < wanted:
        typer.echo(f"fewer than the {wanted:,} asked for: raise --pool above {pool['images']:,}")
    typer.echo(f"saved: {output} ({page})")


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
