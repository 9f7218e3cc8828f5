"""The parts list of a release as CycloneDX 1.6 JSON: every locked package with its digests, and the vendored script.

    python tools/sbom.py [FILE]        # sbom.cdx.json by default; `make sbom`

Versions and digests are those of requirements.lock; licences and who needs whom come from the metadata of what is
installed here. The same lock gives the same file to the byte: it has no date, and its serial number is a hash of
its content.
"""

import json
import re
import sys
import tomllib
from collections import Counter
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, metadata, requires
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from oodscope import __version__
from oodscope.report.render import bundle

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements.lock"
NOT_SHIPPED = ("benchmarks", "dev")
"""Extras for those who work on the package; what only they need is in nobody's installation."""


@dataclass(frozen=True)
class Locked:
    """A package of the lock: its version, and the SHA-256 of every file that may be installed for it."""

    name: str
    version: str
    digests: tuple[str, ...]

    @property
    def purl(self) -> str:
        return f"pkg:pypi/{self.name}@{self.version}"


def read_lock(path: Path = LOCK) -> list[Locked]:
    """What is locked, in the order of the file."""
    blocks = re.split(r"\n(?=\S)", path.read_text(encoding="utf-8"))
    pinned = (re.match(r"([A-Za-z0-9._-]+)==([^\s;\\]+)", block) for block in blocks)
    return [
        Locked(canonicalize_name(found[1]), found[2], tuple(re.findall(r"sha256:([0-9a-f]{64})", block)))
        for found, block in zip(pinned, blocks, strict=True)
        if found is not None
    ]


@cache
def needed_by(name: str, extras: frozenset[str] = frozenset()) -> list[Requirement]:
    """What an installed package requires here, with some of its extras."""
    try:
        lines = requires(name) or []
    except PackageNotFoundError:  # locked for another platform
        return []
    wanted = [Requirement(line) for line in lines]
    return [each for each in wanted if each.marker is None or any(map(each.marker.evaluate, _choices(extras)))]


def _choices(extras: frozenset[str]) -> list[dict[str, str]]:
    return [{"extra": extra} for extra in ("", *extras)]


def closure(first: list[Requirement]) -> set[str]:
    """These and everything that they need, by name."""
    found: set[tuple[str, frozenset[str]]] = set()
    pending = first
    while pending:
        new = {(canonicalize_name(each.name), frozenset(each.extras)) for each in pending} - found
        found |= new
        pending = [each for name, extras in new for each in needed_by(name, extras)]
    return {name for name, _ in found}


def scopes() -> dict[str, set[str]]:
    """What every installation has, and what one with all extras for users has."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].items()
    lines = {
        "required": project["dependencies"],
        "optional": [line for name, lines in extras if name not in NOT_SHIPPED for line in lines],
    }
    return {scope: closure([Requirement(line) for line in wanted]) for scope, wanted in lines.items()}


def licence(name: str) -> list[dict[str, Any]]:
    """As CycloneDX writes it: an SPDX expression where the package states one, else the name that it gives."""
    try:
        known = metadata(name)
    except PackageNotFoundError:
        return []
    if expression := known.get("License-Expression"):
        return [{"expression": expression}]
    named = [each for each in known.get_all("Classifier", []) if each.startswith("License ::")]
    return [{"license": {"name": each}} for each in dict.fromkeys(line.rpartition(" :: ")[2] for line in named)]


def component(part: Locked, scope: str) -> dict[str, Any]:
    """One package of the list."""
    listed: dict[str, Any] = {
        "type": "library",
        "bom-ref": part.purl,
        "name": part.name,
        "version": part.version,
        "scope": scope,
        "hashes": [{"alg": "SHA-256", "content": each} for each in part.digests],
        "purl": part.purl,
    }
    return {**listed, "licenses": found} if (found := licence(part.name)) else listed


def vendored() -> dict[str, Any]:
    """The script that reports carry inside."""
    purl = f"pkg:npm/plotly.js-cartesian-dist-min@{bundle.VERSION}"
    return {
        "type": "library",
        "bom-ref": purl,
        "name": "plotly.js-cartesian-dist-min",
        "version": bundle.VERSION,
        "scope": "required",
        "hashes": [{"alg": "SHA-256", "content": bundle.SHA256}],
        "licenses": [{"license": {"id": "MIT"}}],
        "purl": purl,
    }


def sbom() -> dict[str, Any]:
    """The whole list."""
    locked, order = read_lock(), scopes()
    scope = {each.name: next((s for s, names in order.items() if each.name in names), "excluded") for each in locked}
    refs = {each.name: each.purl for each in locked}
    own = f"pkg:pypi/oodscope@{__version__}"
    components = [*(component(each, scope[each.name]) for each in locked), vendored()]
    needs = {each.purl: {canonicalize_name(line.name) for line in needed_by(each.name)} for each in locked}
    edges = {ref: sorted(refs[name] for name in names if name in refs) for ref, names in needs.items()}
    shipped = [each["bom-ref"] for each in components if each["scope"] == "required"]
    content = {
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": own,
                "name": "oodscope",
                "version": __version__,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
                "purl": own,
            }
        },
        "components": components,
        "dependencies": [
            {"ref": own, "dependsOn": sorted(shipped)},
            *({"ref": ref, "dependsOn": names} for ref, names in edges.items()),
        ],
    }
    serial = uuid5(NAMESPACE_URL, json.dumps(content, sort_keys=True))
    head = {"bomFormat": "CycloneDX", "specVersion": "1.6", "serialNumber": f"urn:uuid:{serial}", "version": 1}
    return head | content


def main() -> None:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "sbom.cdx.json"
    listed = sbom()
    target.write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")
    counts = Counter(each["scope"] for each in listed["components"])
    print(f"{target}: {counts.total()} components ({', '.join(f'{n} {scope}' for scope, n in counts.items())})")


if __name__ == "__main__":
    main()
