"""docs/results/speed.md from the numbers of speed.py: tables and sentences, none of them typed in.

python benchmarks/speed_page.py     # the page again, from docs/results/data
"""

import json
from pathlib import Path
from typing import Any

NAMES = {
    "cold": "20 detectors, searched on `ood_val`, full intervals, cold",
    "warm": "the same again, warm",
    "msp": "msp alone, cold",
    "seven": "seven detectors, cold",
    "seven_tried": "seven detectors, cold, cuDNN's kernels tried",
    "tf32": "20 detectors, searched on `ood_val`, full intervals, cold, in TF32",
    "msp_tf32": "msp alone, cold, in TF32",
    "seven_tf32": "seven detectors, cold, in TF32",
    "peer": "pytorch-ood, the same seven",
}
BARS = {
    "cold": 45.0,
    "warm": 10.0,
    "msp": 20.0,
    "seven": 25.0,
    "seven_tried": 25.0,
    "tf32": 45.0,
    "msp_tf32": 20.0,
    "seven_tf32": 25.0,
}
"""Seconds that are allowed, on one H200 with 16 cores; what was measured before them ran in TF32."""

BEFORE = {
    "cold": "oodscope 0.1: 284 s; OpenOOD: about 1,350 s, at least 890 s",
    "warm": "oodscope 0.1: 131 s",
    "msp": "oodscope 0.1: about 125 s; OpenOOD: 35 s",
    "seven": "oodscope 0.1: about 190 s; pytorch-ood: 96 s",
    "seven_tried": "oodscope 0.1: about 190 s; pytorch-ood: 96 s",
    "tf32": "oodscope 0.1: 284 s; OpenOOD: about 1,350 s, at least 890 s",
    "msp_tf32": "oodscope 0.1: about 125 s; OpenOOD: 35 s",
    "seven_tf32": "oodscope 0.1: about 190 s; pytorch-ood: 96 s",
    "peer": "96 s",
}
"""One run each of an earlier race on an H200 with 16 cores, same sizes and formats."""

FED = {
    "png32": ("PNG 32, ResNet-18 at 32 px", 0.75),
    "jpeg256": ("JPEG 256, ResNet-18 at 32 px", 0.90),
    "resnet50": ("JPEG 224, ResNet-50 at 224 px", 0.90),
    "resnet50_bf16": ("JPEG 224, ResNet-50 at 224 px", 0.90),
    "resnet50_tf32": ("JPEG 224, ResNet-50 at 224 px", 0.90),
}
"""Lines of extraction, and the share of the slower of network and decoding that they must reach."""


EVERY = (*NAMES, *FED, "layouts", "probe")
"""All lines; what is not among the measured ones stands at the end of the page."""

WHOLE_DEMO = "the demo with its second network"
"""A row of speed_two_cores.py: more work than 0.1's demo did."""

TWO_CORES = Path(__file__).parents[1] / "docs" / "results" / "data" / "speed-two-cores.json"
"""What speed_two_cores.py measured."""


def write_page(facts: dict[str, Any], path: Path) -> None:
    cores = json.loads(TWO_CORES.read_text()) if TWO_CORES.exists() else None
    path.write_text("\n".join(page(facts, cores)).rstrip() + "\n", encoding="utf-8")


def page(facts: dict[str, Any], two_cores: dict[str, Any] | None = None) -> list[str]:
    """The page, line by line."""
    lines = facts["lines"]
    return [
        "# From files to verdict",
        "",
        "Question: how long does an evaluation take from image files, and what does it wait for?",
        "",
        f"**Answer.** {_answer(lines)}",
        "",
        f"Command: `{facts['command']}`",
        "",
        f"Machine: {facts['machine']}. Date: {facts['date']}. {_files(facts)} Imports and the first touch of the "
        "device are not counted.",
        "",
        *_races(lines),
        *_stages(lines),
        *_extraction(lines),
        *_layouts(lines),
        *_probe(lines),
        *_precision(lines),
        *_two_cores(two_cores),
        *_beside(),
        *_lost(lines),
    ]


def _answer(lines: dict[str, Any]) -> str:
    """How many bars are kept, and the factor to the other library; of code that changed since, it says so."""
    timed = {name: lines[name]["seconds"] <= bar for name, bar in BARS.items() if "seconds" in lines.get(name, {})}
    fed = {name: lines[name]["share"] >= bar for name, (_, bar) in FED.items() if "share" in lines.get(name, {})}
    old = [name for name in (*timed, *fed) if "outdated" in lines[name]]
    bars = (("time", timed), ("extraction", fed))
    kept = " and ".join(f"{sum(each.values())} of {len(each)} bars of {what}" for what, each in bars)
    said = [f"{kept} hold.", *_peers(lines)]
    if old:
        said.append(f"{len(old)} of these figures are of code that changed since (last section).")
    return " ".join(said)


def _files(facts: dict[str, Any]) -> str:
    count = next((line["images"] for line in facts["lines"].values() if "images" in line), 0)
    share = "" if facts["scale"] == 1 else f" (a rehearsal with {facts['scale']:g} of the files)"
    seconds = facts.get("files_seconds", 0.0)
    return (
        f"The race's files, {count:,} images with the sizes, formats and counts of OpenOOD v1.5's CIFAR-10 benchmark "
        f"and random content{share}, were written in {seconds:.0f} s; one ResNet-18, batches of {_batches(facts)}, "
        "float32 (TF32 off) where a row does not say otherwise; the earlier races let CUDA use TF32."
    )


def _batches(facts: dict[str, Any]) -> str:
    sizes = sorted({line.get("batch", 256) for line in facts["lines"].values() if "seconds" in line})
    return " or ".join(map(str, sizes or [256]))


def _races(lines: dict[str, Any]) -> list[str]:
    rows = [name for name in NAMES if "seconds" in lines.get(name, {})]
    if not rows:
        return []
    table = [
        "| run | s | bar | images through the network | GPU busy | in an earlier race |",
        "|---|---|---|---|---|---|",
    ]
    for name in rows:
        line = lines[name]
        bar = f"≤ {BARS[name]:.0f}" if name in BARS else ""
        busy = "" if line.get("busy") is None else f"{line['busy']:.0%}"
        table.append(
            f"| {NAMES[name]} | {line['seconds']:.1f} | {bar} | {line['forwards']:,} | {busy} | {BEFORE[name]} |"
        )
    return [*table, "", *_verdicts(lines), ""]


def _verdicts(lines: dict[str, Any]) -> list[str]:
    measured = {name: lines[name]["seconds"] for name in BARS if "seconds" in lines.get(name, {})}
    kept = [name for name, seconds in measured.items() if seconds <= BARS[name]]
    said = [f"{len(kept)} of {len(measured)} bars are kept."]
    said += [
        f"{NAMES[name].capitalize()}: {seconds:.1f} s, {seconds - BARS[name]:.1f} s above its bar{_why(name, lines)}."
        for name, seconds in measured.items()
        if seconds > BARS[name]
    ]
    return [" ".join([*said, *_peers(lines)])]


def _why(name: str, lines: dict[str, Any]) -> str:
    """What a line that missed its bar waited for: its longest parts, and what the bare network needs by itself."""
    line, bare = lines[name], lines.get("png32", {}).get("bare")
    parts = sorted(line.get("stages", {}).items(), key=lambda part: -part[1])[:3]
    said = ", ".join(f"{kind} {seconds:.1f} s" for kind, seconds in parts)
    if not said:
        return ""
    words = f": {said}, the rest {line['seconds'] - sum(seconds for _, seconds in parts):.1f} s"
    if bare and name in ("cold", "msp", "seven"):
        # a gradient takes at least as long as a pass, and each pass beyond the first of an image has one before it
        passes = line["forwards"] + max(0, line["forwards"] - line["images"])
        verdict = "is above" if passes / bare > BARS[name] else "leaves too little of"
        words += (
            f". {line['forwards']:,} passes and {passes - line['forwards']:,} gradients take the bare network, at its "
            f"{bare:,.0f} images/s, at least {passes / bare:.1f} s, which {verdict} the bar"
        )
    return words


def _peers(lines: dict[str, Any]) -> list[str]:
    """Against pytorch-ood, which leaves torch's settings alone: TF32, so that our row in TF32 is the like of it."""
    theirs = lines.get("peer", {}).get("seconds")
    ours = {"TF32, as pytorch-ood runs": "seven_tf32", "true float32": "seven"}
    found = {words: lines[name]["seconds"] for words, name in ours.items() if "seconds" in lines.get(name, {})}
    return [] if theirs is None else [_against(seconds, theirs, words) for words, seconds in found.items()]


def _against(ours: float, theirs: float, words: str) -> str:
    faster, factor = ("oodscope", theirs / ours) if ours <= theirs else ("pytorch-ood", ours / theirs)
    return f"In {words}, {faster} takes {factor:.1f} times less time than the other for the same seven detectors."


def _stages(lines: dict[str, Any]) -> list[str]:
    rows = {name: lines[name] for name in NAMES if "stages" in lines.get(name, {})}
    kinds = list(dict.fromkeys(kind for line in rows.values() for kind in line["stages"]))
    if not kinds:
        return []
    table = [f"| seconds in | {' | '.join(kinds)} | the rest |", "|---" * (len(kinds) + 2) + "|"]
    for name, line in rows.items():
        parts = [line["stages"].get(kind, 0.0) for kind in kinds]
        cells = " | ".join(f"{part:.1f}" for part in [*parts, line["seconds"] - sum(parts)])
        table.append(f"| {NAMES[name]} | {cells} |")
    return ["## Where the time goes", "", *table, ""]


def _extraction(lines: dict[str, Any]) -> list[str]:
    rows = [name for name in FED if "rate" in lines.get(name, {})]
    if not rows:
        return []
    table = [
        "| extraction | precision | images/s | bare network | decoding alone | share of the slower | bar | GPU busy |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in rows:
        line, (words, bar) = lines[name], FED[name]
        busy = "" if line["busy"] is None else f"{line['busy']:.0%}"
        table.append(
            f"| {words} | {line['precision']} | {line['rate']:,.0f} | {line['bare']:,.0f} | {line['decoding']:,.0f} | "
            f"{line['share']:.0%} | ≥ {bar:.0%} | {busy} |"
        )
    kept = sum(lines[name]["share"] >= FED[name][1] for name in rows)
    started = [lines[name]["start_seconds"] for name in rows if lines[name].get("start_seconds")]
    start = f" Starting the processes took {max(started):.1f} s, which is not counted here." if started else ""
    return [
        "## Extraction against the bare network",
        "",
        *table,
        "",
        f"{kept} of {len(rows)} bars are kept.{''.join(_short(name, lines[name]) for name in rows)} The bare network "
        "runs in the same precision and layout on a batch that lies on the device; decoding alone is one process per "
        f"core that hands nothing on.{start}",
        "",
    ]


def _short(name: str, line: dict[str, Any]) -> str:
    """By how much a line of extraction missed its bar."""
    words, bar = FED[name]
    if line["share"] >= bar:
        return ""
    slower = "the network" if line["bare"] < line["decoding"] else "decoding"
    least = line["images"] / min(line["bare"], line["decoding"])
    idle = "" if line["busy"] is None else f" while the GPU was idle for {1 - line['busy']:.0%} of the time"
    return (
        f" {words}, {line['precision']}: {100 * (bar - line['share']):.0f} points below its bar; {line['images']:,} "
        f"images took {line['seconds']:.1f} s, of which {slower} alone needs {least:.1f} s{idle}."
    )


def _precision(lines: dict[str, Any]) -> list[str]:
    full, short = (lines.get(name, {}).get("near_auroc", {}) for name in ("cold", "tf32"))
    shared = [name for name in full if name in short]
    if not shared:
        return []
    table = ["| detector | near AUROC, float32 | TF32 | change |", "|---|---|---|---|"]
    table += [
        f"| {name} | {100 * full[name]:.3f} | {100 * short[name]:.3f} | {100 * (short[name] - full[name]):+.3f} |"
        for name in shared
    ]
    worst = max(shared, key=lambda name: abs(short[name] - full[name]))
    change = abs(100 * (short[worst] - full[worst]))
    return [
        "## float32 and TF32",
        "",
        *table,
        "",
        f"Version 0.1 let CUDA use TF32 and recorded float32. The largest change is {change:.3f} points ({worst}); "
        "searched parameters may differ between the two.",
        "",
    ]


def _layouts(lines: dict[str, Any]) -> list[str]:
    rates = lines.get("layouts", {}).get("rates")
    if not rates:
        return []
    columns = list(next(iter(rates.values())))
    table = [f"| images/s | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    table += [f"| {name} | {' | '.join(f'{each[key]:,.0f}' for key in columns)} |" for name, each in rates.items()]
    best = {name: max(each, key=lambda key: each[key]) for name, each in rates.items()}
    return [
        "## The bare network by precision, layout and batch",
        "",
        *table,
        "",
        "Fastest: " + "; ".join(f"{name}: {how}" for name, how in best.items()) + ". Extraction lays out memory by a "
        "rule: planes in float32 on CUDA, channels last in TF32 and bf16.",
        "",
    ]


def _probe(lines: dict[str, Any]) -> list[str]:
    ways = lines.get("probe", {}).get("ways")
    if not ways:
        return []
    rows = sorted({way for found in ways.values() for way in found}, key=lambda way: -ways["plain"].get(way, 0.0))
    table = [
        "| way | plain pass, images/s | ODIN's three passes, images/s | plain pass in TF32, images/s |",
        "|---|---|---|---|",
    ]
    for way in rows:
        cells = [f"{ways[kind][way]:,.0f}" if way in ways.get(kind, {}) else "" for kind in ("plain", "odin", "tf32")]
        table.append(f"| {way} | {' | '.join(cells)} |")
    return [
        "## Ways to run the bare network in float32",
        "",
        *table,
        "",
        f"{_said(ways['plain'])}{_guess(lines, ways['plain'])} Extraction runs by a rule: in float32 on CUDA planes, "
        "in TF32 and bf16 channels last, with the kernels that cuDNN guesses among those that sum in one order, unless "
        "the user sets `torch.backends.cudnn.benchmark`: which kernel is fastest may differ from process to process, "
        "and with it the last bits.",
        "",
    ]


def _guess(lines: dict[str, Any], ways: dict[str, float]) -> str:
    """What trying kernels is worth, against the bare network of the race's own lines, which takes the guess."""
    line = lines.get("png32", {})
    tried = ways.get(f"planes, batches of {line.get('batch')}, tried kernels")
    if not tried or not line.get("bare"):
        return ""
    return (
        f" By cuDNN's guess the bare network of the line PNG 32 passed {line['bare']:,.0f} images/s, by tried kernels "
        f"{tried:,.0f}: {tried / line['bare']:.2f} times as many."
    )


def _said(ways: dict[str, float]) -> str:
    """What each choice is worth where nothing else differs: the median factor over the pairs that were measured."""
    said = []
    for what, with_it, without in (
        ("Planes instead of channels last", "planes", "channels last"),
        ("batches of 1024 instead of 256", "batches of 1024", "batches of 256"),
        ("tried instead of guessed kernels", "tried kernels", "guessed kernels"),
        ("a recorded graph", ", graph", ""),
        ("folded norms", ", folded norms", ""),
    ):
        pairs = [(way, way.replace(with_it, without)) for way in ways if with_it in way]
        factors = sorted(ways[one] / ways[other] for one, other in pairs if other in ways)
        if factors:
            said.append(f"{what}: {factors[len(factors) // 2] - 1:+.1%}")
    return "; ".join(said) + "." if said else ""


def _two_cores(facts: dict[str, Any] | None) -> list[str]:
    """The same work by this version and by 0.1 on two cores."""
    if facts is None:
        return []
    table = [
        "| work | s of processor time, now | 0.1 | factor | s of wall time, now | 0.1 |",
        "|---|---|---|---|---|---|",
    ]
    said = []
    for name, row in facts["rows"].items():
        now, before = row["now"], row["before"]
        factor = now["processor"] / before["processor"]
        table.append(
            f"| {name} | {now['processor']:.1f} | {before['processor']:.1f} | {factor:.2f} | {now['wall']:.0f} | "
            f"{before['wall']:.0f} |"
        )
        words = "not slower" if factor <= 1.05 else "slower"
        said.append(f"{name}: {words} ({factor:.2f} times the processor time of 0.1).")
    return [
        "## On two cores, against version 0.1",
        "",
        f"Command: `{facts['command']}`. Machine: {facts['machine']}. Date: {facts['date']}. Load before: "
        f"{facts['load']:.1f}, so wall times say little where it is above 1. Each figure is the least of its "
        "repetitions "
        f"({', '.join(str(row['repetitions']) for row in facts['rows'].values())}).",
        "",
        *table,
        "",
        " ".join(said),
        *([f"Not yet run: {WHOLE_DEMO} (`--lines demo`)."] if WHOLE_DEMO not in facts["rows"] else []),
        "",
    ]


BESIDE = {
    "bootstrap-speed": "Intervals",
    "opening-speed": "Opening, digests, damaged stores",
    "metric-digits": "Digits of several shards",
}
"""Pages that measure the parts, and what they are about."""


def _beside() -> list[str]:
    """The answers of the pages beside this one, as they stand there."""
    rows = []
    for name, about in BESIDE.items():
        place = Path(__file__).parents[1] / "docs" / "results" / f"{name}.md"
        text = place.read_text(encoding="utf-8") if place.exists() else ""
        if "**Answer.**" in text:
            answer = " ".join(text.split("**Answer.**")[1].split("\n\n")[0].split())
            rows.append(f"- [{about}]({name}.md): {answer}")
        rows += [line for line in text.splitlines() if "damages were" in line]
    return ["## The parts, each on its own page", "", *rows, ""] if rows else []


def _lost(lines: dict[str, Any]) -> list[str]:
    """What nobody has measured yet, or not since the code changed, and the command that does."""
    missing = [name for name in EVERY if not lines.get(name) or {"skipped", "failed"} & set(lines[name])]
    changes: dict[str, list[str]] = {}
    for name in EVERY:
        if (change := lines.get(name, {}).get("outdated")) is not None:
            changes.setdefault(change, []).append(name)
    if not missing and not changes:
        return []
    reasons = [
        f"- {name}: {lines.get(name, {}).get('skipped') or lines.get(name, {}).get('failed') or 'not begun'}"
        for name in missing
    ]
    return [
        "## Not measured",
        "",
        f"Not yet run: {', '.join(missing) or 'none'}. The command above runs these and those below, and no others, "
        "and goes on where it stopped; `--lines NAME,...` measures lines anew.",
        "",
        *reasons,
        *(f"- {', '.join(names)}: measured before {change}" for change, names in changes.items()),
    ]


if __name__ == "__main__":
    results = Path(__file__).parents[1] / "docs" / "results"
    write_page(json.loads((results / "data" / "speed.json").read_text()), results / "speed.md")
