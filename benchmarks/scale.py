"""Does it matter who does the work, and what does dividing it cost?

    python benchmarks/scale.py numbers study stores ranks imports float16   # other work may share the cores
    python benchmarks/scale.py overhead speed                               # two idle cores, 7 minutes
    python benchmarks/scale.py page                                         # the page again, from what is there

Each part writes its figures to docs/results/data/scale.json, from which scale_page.py writes docs/results/scale.md.
``numbers`` and ``stores`` take names of their pieces too: ``numbers:kills,ray``, ``stores:databases``.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
import scale_claims
from scale_numbers import HERE, Figures, numbers
from scale_page import FIGURES, write_page
from scale_speed import overhead, speed

PARTS: dict[str, Callable[[Path], Figures]] = {
    "speed": speed,
    "overhead": overhead,
    "study": scale_claims.study,
    "ranks": scale_claims.ranks,
    "imports": scale_claims.imports,
    "float16": scale_claims.float16,
}
PIECES: dict[str, Callable[[Path, list[str], Figures], Iterator[Figures]]] = {
    "numbers": numbers,
    "stores": scale_claims.stores,
}
"""Parts whose pieces can be asked for by name, and are kept one by one."""


def keep(file: Path, name: str, content: Figures) -> None:
    """Write the figures of one part; others may have been written meanwhile."""
    known: Figures = json.loads(file.read_text()) if file.exists() else {}
    known[name] = {
        "figures": content,
        "command": f"python benchmarks/scale.py {name}",
        "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}",
        "load": round(os.getloadavg()[0], 1),
        "date": datetime.now(UTC).date().isoformat(),
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(known, indent=1) + "\n")
    print(f"{name}: {json.dumps(content)[:600]}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="+", help=f"numbers[:WAY,...], stores[:CLAIM,...], {', '.join(PARTS)}, page")
    parser.add_argument("--results", type=Path, default=HERE / "docs" / "results")
    arguments = parser.parse_args()
    file = arguments.results / "data" / FIGURES
    for part in arguments.parts:
        name, _, pieces = part.partition(":")
        if name == "page":
            continue
        known: Figures = json.loads(file.read_text()) if file.exists() else {}
        with tempfile.TemporaryDirectory(prefix="scale-") as folder:
            if name in PARTS:
                keep(file, name, PARTS[name](Path(folder)))
                continue
            chosen = [piece.strip() for piece in pieces.split(",") if piece.strip()]
            for content in PIECES[name](Path(folder), chosen, known.get(name, {}).get("figures", {})):
                keep(file, name, content)
    write_page(arguments.results)


if __name__ == "__main__":
    main()
