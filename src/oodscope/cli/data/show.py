"""``oodscope data show``: everything about one benchmark or dataset."""

import json
from collections.abc import Iterator
from typing import Any

import typer

from oodscope.cli.data.options import AsJson, Name
from oodscope.cli.options import Root


def show(name: Name, root: Root = None, as_json: AsJson = False) -> None:
    """Show the sets, counts, terms and sources of a benchmark."""
    from oodscope.data.packaged import names_in
    from oodscope.data.public.cards import load_card
    from oodscope.data.public.describe import describe_benchmark, describe_dataset
    from oodscope.data.public.needs import needs_of
    from oodscope.data.public.root import data_root

    needs_of(name)  # a name that is neither a benchmark nor a dataset is refused here
    folder = data_root(root)
    is_benchmark = name in names_in("benchmarks")
    described = describe_benchmark(name, folder) if is_benchmark else describe_dataset(load_card(name), folder)
    if as_json:
        typer.echo(json.dumps(described, indent=1))
    else:
        typer.echo("\n".join(_benchmark(described) if is_benchmark else _dataset(described)))


def _benchmark(described: dict[str, Any]) -> Iterator[str]:
    yield f"{described['benchmark']} {described['version']}: {described['summary']}"
    if described["paper"]:
        yield f"paper: {described['paper']}"
    if described["preprocessing"]:
        yield "preprocessing: " + ", ".join(f"{key} {value}" for key, value in described["preprocessing"].items())
    yield f"root: {described['root']}"
    yield ""
    yield f"{'role':<10}{'set':<18}{'images':>10}  {'state':<12}from"
    for each in described["sets"]:
        state = f"({each['state']})" if each.get("optional") else each["state"]
        yield f"{each['role']:<10}{each['set']:<18}{_number(each['count']):>10}  {state:<12}{each['from']}"
    for dataset in described["datasets"]:
        yield ""
        yield from _dataset(dataset)


def _dataset(described: dict[str, Any]) -> Iterator[str]:
    yield f"{described['dataset']}: {described['title']}. {described['summary']}"
    yield f"  terms: {described['licence']}"
    yield f"  home: {described['home']}"
    for name, split in described["splits"].items():
        yield f"  split {name}: {_number(split['count'])} images, {split['state']}"
    for fetch in described["fetch"]:
        if "url" in fetch:
            yield f"  fetch: {fetch['url']} ({fetch['trust']})"
        if "ask" in fetch:
            yield f"  {'or ' * ('url' in fetch)}by hand: {fetch['ask']}"


def _number(count: int | None) -> str:
    return "?" if count is None else f"{count:,}"
