"""``oodscope cache``: what is kept to be computed once, whether it is whole, and what may go."""

import json
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from oodscope.cli import options
from oodscope.cli.command import EXECUTION, add, group, loading
from oodscope.cli.examples import EXAMPLES

if TYPE_CHECKING:
    from oodscope.jobs.cache import Entry

CHOICE = "Choice"
Kinds = Annotated[
    list[str] | None,
    typer.Option(
        "--kind", rich_help_panel=CHOICE, help=f"activations, pixels, training, ...; all unless given. {options.LIST}"
    ),
]


def list_all(kinds: Kinds = None, as_json: options.AsJson = False) -> None:
    """Show what the cache holds, how large and how old it is.

    One line for each kind; with --kind one for each entry. The cache is OODSCOPE_CACHE; activations and packs may lie
    in OODSCOPE_ACTIVATIONS and OODSCOPE_PIXELS.
    """
    loading()
    from oodscope.base.files import cache_root
    from oodscope.jobs.cache import KINDS, entries

    names = options.separated(kinds)
    every = entries(names)
    if as_json:
        typer.echo(json.dumps([_as_json(each) for each in every]))
        return
    for kind in KINDS:
        own = [each for each in every if each.kind == kind]
        if own:
            typer.echo(f"{_size(own):>10}  {len(own):>6,}  {_age(own):>9}  {kind}: {KINDS[kind].summary}")
        for each in reversed(own) if names else ():
            note = f"  ({each.reason})" if each.reason else ""
            typer.echo(f"{_size([each]):>10}  {len(each.files):>6,}  {_age([each]):>9}    {each.name}{note}")
    typer.echo(f"{_size(every):>10}  {len(every):>6,}             in all, at {cache_root()}")


def verify(
    kinds: Kinds = None,
    remove: Annotated[
        bool, typer.Option("--remove", rich_help_panel=EXECUTION, help="Remove what is damaged; it is computed anew.")
    ] = False,
) -> None:
    """Compare stored activations, packs and networks with checksums.

    Ends with status 1 if something is damaged and stays. Runs look too: what they read is verified when it is first
    read.
    """
    loading()
    from oodscope.base.errors import StorageError
    from oodscope.jobs.cache import damaged, entries

    every = entries(options.separated(kinds))
    found = list(damaged(every))
    for entry, reason in found:
        typer.echo(f"damaged: {reason}")
        if remove:
            entry.remove()
    typer.echo(
        f"{len(every):,} entries, {_size(every)}: {len(found)} damaged{' and removed' if found and remove else ''}"
    )
    if found and not remove:
        raise StorageError(
            f"{len(found)} of {len(every)} entries are damaged; remove them: oodscope cache verify --remove"
        )


def prune(
    older: Annotated[
        str | None, typer.Option(rich_help_panel=CHOICE, metavar="AGE", help="Not used for so long: 90d, 12h, 4w.")
    ] = None,
    keep_under: Annotated[
        str | None,
        typer.Option(rich_help_panel=CHOICE, metavar="SIZE", help="Until no more than this is left: 500G, 1.5T."),
    ] = None,
    kinds: Kinds = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", rich_help_panel=EXECUTION, help="Show what would go; remove nothing.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Remove what was not used for long, or until little is left.

    The least recently used goes first. Files of older versions and of killed processes go in any case, what was used in
    the last ten minutes stays, and downloaded datasets go only with --kind data.
    """
    loading()
    from oodscope.jobs.cache import chosen, entries, prunable, read_age, read_bytes

    age = None if older is None else read_age(older)
    size = None if keep_under is None else read_bytes(keep_under)
    names = options.separated(kinds)
    every = prunable(entries(names), names)
    going = chosen(every, older=age, keep_under=size)
    for each in going:
        if not dry_run:
            each.remove()
    if as_json:
        typer.echo(json.dumps([_as_json(each) for each in going]))
        return
    for each in going:
        why = f"  ({each.reason})" if each.reason else ""
        typer.echo(f"{_size([each]):>10}  {_age([each]):>9}  {each.kind}/{each.name}{why}")
    left = [each for each in every if each not in going]
    typer.echo(f"{len(going)} entries, {_size(going)} {'would go' if dry_run else 'removed'}; {_size(left)} stay")


def _as_json(entry: "Entry") -> dict[str, object]:
    about = {"kind": entry.kind, "name": entry.name, "place": str(entry.place), "files": len(entry.files)}
    return {**about, "bytes": entry.bytes, "used": entry.used, "reason": entry.reason}


def _size(entries: Sequence["Entry"]) -> str:
    size = float(sum(each.bytes for each in entries))
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:,.0f} {unit}" if unit == "B" else f"{size:,.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} TB"


def _age(entries: Sequence["Entry"]) -> str:
    hours = (time.time() - max(each.used for each in entries)) / 3600
    return f"{hours / 24:,.0f} d ago" if hours >= 48 else f"{hours:,.0f} h ago"


cache = group("cache", "Show, verify and prune what is kept on disk.")
add(cache, list_all, name="list", examples=EXAMPLES["cache list"])
add(cache, verify, examples=EXAMPLES["cache verify"])
add(cache, prune, examples=EXAMPLES["cache prune"])
