"""The reference, written from the package: a page for each detector, recipe, benchmark, metric and protocol, the public
names, every command with its options, and the keys of job files."""

import json
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from oodscope.base.catalog import catalog
from oodscope.document.citations import cite

Entry = dict[str, Any]

RESULTS = Path(__file__).parents[1] / "results"


def write_reference(folder: Path) -> None:
    """Every page of the reference and no other; one that did not change is left, and Sphinx does not read it again."""
    pages = {
        "api": _api(),
        "commands": _commands(),
        "jobs": _jobs(),
        **_pages("metrics", _metric),
        **_pages("detectors", _detector),
        **_pages("stream_detectors", _detector),
        **_pages("recipes", _recipe),
        **_pages("benchmarks", _benchmark),
        **_pages("protocols", _protocol),
    }
    for left in set(folder.rglob("*.rst")) - {folder / f"{name}.rst" for name in pages}:
        left.unlink()
    for name, text in pages.items():
        path = folder / f"{name}.rst"
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def _heading(text: str, line: str = "=") -> str:
    return f"{text}\n{line * len(text)}\n\n"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    def line(cells: tuple[str, ...]) -> str:
        return "\n".join(f"{'   * -' if n == 0 else '     -'} {cell}" for n, cell in enumerate(cells))

    return ".. list-table::\n   :header-rows: 1\n\n" + "\n".join(map(line, [head, *rows])) + "\n\n"


def _code(text: str, language: str = "text") -> str:
    indented = "\n".join(f"   {line}" if line else "" for line in text.splitlines())
    return f".. code-block:: {language}\n\n{indented}\n\n"


def _pages(section: str, write: Callable[[str, Entry], str]) -> dict[str, str]:
    """A page for each entry of a section of the catalogue, and their index: a table, and the same as a hidden tree."""
    entries = catalog(section)
    made = {f"{section}/{name}": write(name, entry) for name, entry in entries.items()}
    head, cells = _COLUMNS[section]
    rows = [(f":doc:`{name} <{name}>`", *(cells(entry))) for name, entry in entries.items()]
    tree = ".. toctree::\n   :hidden:\n\n" + "".join(f"   {name} <{name}>\n" for name in entries)
    made[f"{section}/index"] = _heading(section.capitalize().replace("_", " ")) + _table(("name", *head), rows) + tree
    return made


def _columns_of_a_detector(entry: Entry) -> tuple[str, ...]:
    title = entry["paper_title"] or "not published"
    return title, entry["paper"] or "", ", ".join(entry["needs"]) or "logits", f"``{entry['cost']}``"


_DETECTOR_HEAD = ("method", "paper", "needs", "cost")
_COLUMNS: dict[str, tuple[tuple[str, ...], Callable[[Entry], tuple[str, ...]]]] = {
    "detectors": (_DETECTOR_HEAD, _columns_of_a_detector),
    "stream_detectors": (_DETECTOR_HEAD, _columns_of_a_detector),
    "recipes": (
        ("what it does", "paper", "extra data"),
        lambda entry: (entry["summary"], entry["paper"] or "", entry["extra_data"] or "none"),
    ),
    "benchmarks": (
        ("what it holds", "near", "far"),
        lambda entry: (entry["summary"], ", ".join(entry["near"]), ", ".join(entry["far"])),
    ),
    "protocols": (("what it asks", "paper"), lambda entry: (entry["summary"], entry["paper"] or "")),
    "metrics": (
        ("label", "better", "unit", "meaning"),
        lambda entry: (entry["label"], entry["better"], entry["unit"], entry["summary"]),
    ),
}
"""The columns of each index beside the name, and how an entry fills them."""


def _cited(name: str) -> str:
    papers = [citation.paper for citation in cite([name]) if citation.paper]
    return "".join(f"{paper}.\n\n{_code(paper.bibtex(), 'bibtex')}" for paper in papers)


def _class(entry: Entry) -> str:
    return f".. autoclass:: {entry['target'].replace(':', '.')}\n   :no-index:\n\n"


def _values(name: str, values: dict[str, Any]) -> str:
    rows = [(f"``{key}``", f"``{json.dumps(value)}``") for key, value in values.items()]
    return _heading(name, "-") + _table(("parameter", "value"), rows) if rows else ""


def _detector(name: str, entry: Entry) -> str:
    verb, chosen = ("stream", f"knn,{name}") if entry["kind"] == "stream detector" else ("evaluate", name)
    facts = [
        ("kind", entry["kind"]),
        ("needs", ", ".join(entry["needs"]) or "nothing beside the logits"),
        ("cost", f"``{entry['cost']}``"),
        (
            "form",
            "unverified: no published number or code to compare with" if entry["unverified_form"] else "published",
        ),
    ]
    return (
        _heading(name)
        + _class(entry)
        + _table(("fact", "value"), facts)
        + _values("Defaults", entry["parameters"])
        + _values("Searched by ``--tune``", entry["grid"])
        + _heading("Use", "-")
        + _code(f"oodscope {verb} --model resnet18_32 --weights net.pt --benchmark cifar10 -d {chosen}", "shell")
        + _measured(name)
        + _heading("Paper", "-")
        + (_cited(name) or "Not published.\n")
    )


_MEASURED = {
    "detectors-cifar": ("ood_val", "Near-OOD AUROC in percent"),
    "imagenet-scale": ("fit, s", "1.28 million rows of features on 2 cores"),
}
"""Result pages with tables of detectors: a column that the table has, and what its columns are about."""


def _measured(name: str) -> str:
    """The rows of a detector on the result pages, each with a link to its page."""
    text = ""
    for page, (column, about) in _MEASURED.items():
        for section, head, cells in _rows(RESULTS / f"{page}.md"):
            if column in head and cells[0].split()[0] == name:
                where = f"{about}, {section}" if section else about
                text += f"{where} (:doc:`/results/{page}`):\n\n"
                filled = [(key, cell) for key, cell in zip(head[1:], cells[1:], strict=True) if cell]
                text += _table(tuple(key for key, _ in filled), [tuple(cell for _, cell in filled)])
    return _heading("Measured", "-") + text if text else ""


def _rows(page: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """The rows of every table of a page whose first column is ``detector``: section, head, cells."""
    section, head = "", []
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = line[3:].partition(" (")[0]
        cells = [cell.strip() for cell in line[1:].removesuffix("|").split("|")] if line.startswith("|") else []
        if not cells:
            head = []
        elif cells[0] == "detector":
            head = cells
        elif head and cells[0] and not cells[0].startswith("-") and len(cells) == len(head):
            yield section, head, cells


def _recipe(name: str, entry: Entry) -> str:
    facts = [
        ("extra data", entry["extra_data"] or "none"),
        ("cost of a step, cross-entropy = 1", str(entry["cost"])),
        ("detectors that it is meant for", ", ".join(f":doc:`../detectors/{d}`" for d in entry["detectors"]) or "any"),
    ]
    return (
        _heading(name)
        + _class(entry)
        + _table(("fact", "value"), facts)
        + _values("Settings", entry["parameters"])
        + _heading("Use", "-")
        + _code(f"oodscope train --recipe {name} --benchmark cifar10 --seeds 0,1,2", "shell")
        + _heading("Paper", "-")
        + (_cited(name) or "Not of one paper.\n")
    )


def _benchmark(name: str, entry: Entry) -> str:
    roles = [(role, ", ".join(entry[role]) or "none") for role in ("near", "far", "csid")]
    use = f"oodscope data show {name}\noodscope evaluate --model resnet18_32 --weights net.pt --benchmark {name}"
    return (
        _heading(name)
        + f"{entry['summary']} (version {entry['version']}).\n\n"
        + _table(("role", "sets"), roles)
        + _heading("Use", "-")
        + _code(use, "shell")
        + _heading("Paper", "-")
        + (_cited(name) or "Drawn by this package.\n")
    )


def _protocol(name: str, entry: Entry) -> str:
    facts = [
        ("headline", ", ".join(f"``{metric}``" for metric in entry["headline"])),
        ("wants scored beside the test sets", ", ".join(entry["needs"]) or "nothing"),
        ("version of its numbers", str(entry["version"])),
    ]
    return _heading(name) + f"{entry['summary']}\n\n" + _class(entry) + _table(("fact", "value"), facts) + _cited(name)


def _metric(name: str, entry: Entry) -> str:
    facts = [
        ("name in files and options", f"``{name}``"),
        ("better", entry["better"]),
        ("unit", entry["unit"]),
        ("headline of", ", ".join(f":doc:`../protocols/{each}`" for each in _led_by(name)) or "no protocol"),
    ]
    return (
        _heading(entry["label"])
        + f"{entry['summary'][0].upper()}{entry['summary'][1:]}.\n\n"
        + _table(("fact", "value"), facts)
        + _heading("Use", "-")
        + _code(f"oodscope table runs/demo --metric {name}", "shell")
    )


def _led_by(metric: str) -> list[str]:
    return [name for name, entry in catalog("protocols").items() if metric in entry["headline"]]


def _api() -> str:
    import oodscope

    text = _heading("Python") + "Everything under ``import oodscope as oods``.\n\n"
    for name in sorted(set(oodscope.__all__) - {"__version__"}, key=str.lower):
        value = getattr(oodscope, name)
        kind = "autoclass" if isinstance(value, type) else "autofunction" if callable(value) else "autodata"
        home = f"{value.__module__}.{value.__qualname__}" if kind != "autodata" else f"oodscope.{name}"
        members = "   :members:\n" if kind == "autoclass" else ""
        text += _heading(name, "-") + f".. {kind}:: {home}\n{members}\n"
    return text


def _commands() -> str:
    import typer

    from oodscope.cli.app import app

    return _heading("Commands") + "".join(_command("oodscope", typer.main.get_command(app)))


def _command(path: str, command: Any) -> Iterator[str]:
    inner = getattr(command, "commands", {})
    if path != "oodscope":
        yield _heading(path, "-") + f"{_plain(command.help or '')}\n\n"
        options = [param for param in command.params if not getattr(param, "hidden", False)]
        rows = [
            (f"``{_spelling(param)}``", _plain(getattr(param, "help", "") or ""), _default(param)) for param in options
        ]
        if rows:
            yield _table(("option", "meaning", "default"), rows)
    for name, each in sorted(inner.items()):
        yield from _command(f"{path} {name}", each)


def _spelling(param: Any) -> str:
    return ", ".join(param.opts) if param.param_type_name == "option" else param.name.upper()


def _default(param: Any) -> str:
    value = param.default
    plain = value is None or callable(value) or value is False or value == "" or value == []
    return "" if plain or "UNSET" in repr(value) else f"``{getattr(value, 'value', value)}``"


def _plain(text: str) -> str:
    return " ".join(text.split()).replace("*", "\\*").replace("`", "").replace("|", "\\|")


_JOBS = {
    "An evaluation": "oodscope.jobs.job:Job",
    "An evaluation of arrays": "oodscope.jobs.arrays:ActivationsJob",
    "An evaluation of scores": "oodscope.jobs.arrays:ScoresJob",
    "A cross-validation": "oodscope.jobs.crossval:CrossvalJob",
    "A training": "oodscope.jobs.train:TrainingJob",
    "The section model": "oodscope.jobs.model:ModelSpec",
    "The section attack": "oodscope.jobs.attack:AttackSettings",
    "The section fit": "oodscope.jobs.fit:FitSettings",
}
"""Each kind of job file, and the model that reads it."""


def _jobs() -> str:
    text = _heading("Job files") + "``oodscope run job.yaml``: every key, its type and its default.\n\n"
    for title, target in _JOBS.items():
        module, name = target.split(":")
        model = getattr(import_module(module), name)
        rows = [
            (f"``{key}``", f"``{_type(field)}``", _field_default(field)) for key, field in model.model_fields.items()
        ]
        text += _heading(title, "-") + f".. autoclass:: {module}.{name}\n   :no-index:\n\n"
        text += _table(("key", "type", "default"), rows)
    return text


def _type(field: Any) -> str:
    return str(getattr(field.annotation, "__name__", field.annotation)).replace("typing.", "").split("oodscope.")[-1]


def _field_default(field: Any) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value == "":
        return "empty"
    plain = value is None or isinstance(value, (str, int, float, bool, list, tuple))
    return f"``{value if plain else type(value).__name__}``"


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the reference before the pages are read."""
    app.connect("builder-inited", lambda app: write_reference(Path(app.srcdir) / "reference"), priority=100)
    return {"parallel_read_safe": True}
