"""``oodscope generate again``: a generated set, made again from its recipe."""

from pathlib import Path
from typing import Annotated

import typer

from oodscope.cli.command import loading, progress
from oodscope.cli.generate import options
from oodscope.cli.options import Device, Root


def again(
    recipe: Annotated[Path, typer.Option(help="Folder of the set to make again.")],
    id_images: options.Id,
    output: options.Output,
    val: options.Val = None,
    work: options.Work = None,
    root: Root = None,
    device: Device = "auto",
) -> None:
    """Make a set again from its recipe, and compare.

    From the images it was made from. The status is 1 if an image differs: another device or other versions end with
    other networks.
    """
    from oodscope.base.errors import DataError
    from oodscope.base.files import cache_root
    from oodscope.data.generated.files import check_free

    loading()
    shown = progress()

    from oodscope.generation.sets.making import plan_of, remake_set
    from oodscope.jobs.opening import open_id
    from oodscope.report.page.generated_set import write_set_page

    check_free(output)
    plan = plan_of(recipe)
    sets = open_id(id_images, val, root, plan.seed, shown)
    place = work or cache_root() / "generated"
    found = remake_set(
        recipe, sets.train, sets.val, output, redrawn=sets.test, work=place, device=device, progress=shown
    )
    write_set_page(output)
    if found:
        raise DataError(f"{output} is not the set of {recipe}: {found}")
    typer.echo(f"the same: every image of {output} is that of {recipe}, to the byte")
