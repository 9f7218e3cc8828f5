"""``oodscope data pack``: decode a benchmark's images once, for all networks that see them alike."""

import json
from typing import Annotated

import typer

from oodscope.cli.choices import complete
from oodscope.cli.command import loading, progress
from oodscope.cli.data.options import AsJson
from oodscope.cli.options import DATA, LIST, ImagesPerClass, Root, separated

CROP = "Crop"


def pack(
    benchmark: Annotated[
        str,
        typer.Argument(
            help="A name of 'oodscope list benchmarks', or a YAML file.", autocompletion=complete("benchmarks")
        ),
    ],
    size: Annotated[
        int | None,
        typer.Option(rich_help_panel=CROP, help="Side of the square that networks see; by default the benchmark's."),
    ] = None,
    resize: Annotated[
        int | None, typer.Option(rich_help_panel=CROP, help="Length of the short side before the crop.")
    ] = None,
    interpolation: Annotated[
        str | None, typer.Option(rich_help_panel=CROP, help="nearest, bilinear or bicubic, as the networks' transform.")
    ] = None,
    sets: Annotated[
        list[str] | None, typer.Option(rich_help_panel=DATA, help=f"Sets to pack; all unless given. {LIST}")
    ] = None,
    root: Root = None,
    images_per_class: ImagesPerClass = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", rich_help_panel=DATA, help="Say how many bytes it would take; decode nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Decode a benchmark's images once, and keep them as bytes.

    Evaluations and trainings whose transform cuts images alike find the pack and decode nothing; their numbers are the
    same to the bit. It lies in OODSCOPE_PIXELS, by default in the cache ('oodscope cache'). Interrupted, it goes on.
    """
    from oodscope.base.config import parse_declared
    from oodscope.base.errors import UnknownNameError, UsageError
    from oodscope.data.loading import load_benchmark
    from oodscope.data.preprocess import Preprocess

    given = {"size": size, "resize": resize, "interpolation": interpolation}
    asked = {key: value for key, value in given.items() if value is not None}
    parse_declared(Preprocess, {"size": 1, **asked}, "data pack")  # before anything is opened
    loading()
    opened = load_benchmark(benchmark, root=root, images_per_class=images_per_class, progress=progress())
    if opened.transform is None and size is None:
        raise UsageError(f"{benchmark} has no transform of its own: pass --size, and --resize where networks use one")
    known = {} if opened.transform is None else opened.transform.model_dump()
    if size is not None:
        known.pop("resize", None)  # of another size it would be another crop
    preprocess = Preprocess.model_validate({**known, **asked})
    members = {images.name: images for _, images in opened.members()}
    for name in separated(sets):
        if name not in members:
            raise UnknownNameError(f"set of {benchmark}", name, members, f"It has: {', '.join(members)}")
    chosen = [images for name, images in members.items() if not sets or name in separated(sets)]

    from oodscope.activations.packing import pack_bytes, pack_images, refuse_full_disk
    from oodscope.activations.store.packs import pack_root

    count = sum(len(images) for images in chosen)
    needed = pack_bytes(count, preprocess)
    packed = 0
    if not dry_run:
        refuse_full_disk(needed)
        packed = sum(pack_images(images, preprocess, progress()) for images in chosen)
    if as_json:
        about = {"images": count, "bytes": needed, "packed": packed, "place": str(pack_root())}
        typer.echo(json.dumps({**about, "crop": preprocess.model_dump(include=set(given))}))
        return
    verb = "would take" if dry_run else "take"
    typer.echo(f"{count:,} images of {benchmark} {verb} {needed / 1e9:,.3f} GB at {pack_root()}")
    if not dry_run:
        typer.echo(f"{packed:,} decoded now, {count - packed:,} packed before or shown twice")
