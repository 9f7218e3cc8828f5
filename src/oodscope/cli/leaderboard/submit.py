"""``oodscope leaderboard submit``: one detector of a run as an entry."""

from pathlib import Path
from typing import Annotated

import typer

from oodscope.cli.choices import Track


def submit(
    run: Annotated[Path, typer.Argument(help="Folder of a run of 'oodscope evaluate' or 'oodscope attack'.")],
    method: Annotated[str, typer.Option(help="Name of the method, as papers call it.")],
    board: Annotated[Path, typer.Option(help="Folder of entries.")] = Path("leaderboard"),
    entry: Annotated[str, typer.Option("--id", help="Of the entry, and its folder; made from method and run.")] = "",
    detector: Annotated[str | None, typer.Option(help="Which detector of the run; where it has one, that one.")] = None,
    track: Annotated[
        Track | None, typer.Option(help="See 'oodscope list tracks'; by default what the training says.")
    ] = None,
    group: Annotated[str, typer.Option(help="Shared by entries that differ in the seed of the training only.")] = "",
    about: Annotated[
        Path | None,
        typer.Option(
            help="YAML with what a run cannot know: authors, paper (title, venue, year, link, bibtex), code, weights, "
            "reported (protocol, metric, group, set, printed, source), trained_on, pretrained_on, training_seed, "
            "score_form, filters, notes."
        ),
    ] = None,
) -> None:
    """Write one detector of a run as an entry.

    An entry is a record and its scores.
    """
    import re

    from oodscope.base.config import parse_declared, read_yaml
    from oodscope.leaderboard.verify.about import About
    from oodscope.leaderboard.verify.submitting import submit as submit_run

    described = parse_declared(About, read_yaml(about) or {}, str(about)) if about is not None else About()
    made = re.sub(r"[^a-z0-9_]+", "-", f"{method} {run.resolve().name}".lower()).strip("-")
    folder = submit_run(
        run,
        board,
        id=entry or made[:80],
        method=method,
        track=None if track is None else track.value,
        detector=detector,
        group=group,
        about=described,
    )
    typer.echo(f"entry: {folder}")
    typer.echo(f"check it: oodscope leaderboard verify {folder}")
