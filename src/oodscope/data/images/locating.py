"""What a path or name on the command line stands for."""

import inspect
import re
from pathlib import Path

from oodscope.base.errors import DataError, UnknownNameError, did_you_mean
from oodscope.data.generated.files import GeneratedSpec, is_generated
from oodscope.data.images.sourcespec import SOURCES, SourceSpec
from oodscope.data.images.specs import CsvSpec, HuggingFaceSpec, WebDatasetSpec
from oodscope.data.manifest import FolderSpec, ListSpec, NpzSpec, TorchvisionSpec

FORMS = "a folder, a .txt, .csv or .tsv list, an .npz file, .tar shards, hf:NAME[:SPLIT] or torchvision:CLASS[:SPLIT]"

_PREFIXED = re.compile(r"(hf|torchvision):(.+?)(?::(\w+))?")


def locate(text: str) -> SourceSpec:
    """The declaration of the set that ``text`` names, as it would stand in a benchmark's YAML."""
    if prefixed := _PREFIXED.fullmatch(text):
        library, name, split = prefixed.groups()
        return HuggingFaceSpec(source="hf", path=name, split=split) if library == "hf" else _torchvision(name, split)
    source, colon, place = text.partition(":")
    if colon and source in SOURCES.others():
        return SOURCES[source].from_place(place)
    if is_generated(text):
        return GeneratedSpec(source="generated", path=text)
    if Path(text).is_dir():
        return FolderSpec(source="folder", path=text)
    suffix = Path(text).suffix.lower()
    if suffix == ".txt":
        return ListSpec(source="list", path=text)
    if suffix in (".csv", ".tsv"):
        return CsvSpec(source="csv", path=text)
    if suffix == ".npz":
        return NpzSpec(source="npz", path=text)
    if suffix == ".tar":
        return WebDatasetSpec(source="webdataset", path=text)
    what = "is not an image source" if Path(text).exists() else "is not there"
    more = "".join(f", {name}:PLACE" for name in SOURCES.others())
    meant = did_you_mean(source, ["hf", "torchvision", *SOURCES.others()]) if colon else ""
    raise DataError(f"{text} {what}; images come from {FORMS}{more}{meant and '.' + meant}")


def stem_of(text: str) -> str:
    """A short name for the set that ``text`` names: its last part, without endings, braces and wildcards."""
    if prefixed := _PREFIXED.fullmatch(text):
        return Path(prefixed[2]).name
    source, colon, place = text.partition(":")
    if colon and source in SOURCES.others():
        text = place
    path = Path(text)
    last = path.resolve().name if path.is_dir() else path.stem
    return re.sub(r"\{[^}]*\}|[*?\[\]]", "", last).strip("-_. ") or "set"


def _torchvision(name: str, split: str | None) -> TorchvisionSpec:
    """A dataset under the current folder; its constructor says how it calls its splits."""
    from torchvision import datasets

    if name not in datasets.__all__:
        raise UnknownNameError("torchvision dataset", name, datasets.__all__)
    if split is None:
        return TorchvisionSpec(source="torchvision", dataset=name)
    accepted = inspect.signature(getattr(datasets, name)).parameters
    if "split" in accepted:
        return TorchvisionSpec(source="torchvision", dataset=name, options={"split": split})
    if "train" in accepted and split in ("train", "test"):
        return TorchvisionSpec(source="torchvision", dataset=name, options={"train": split == "train"})
    raise DataError(f"torchvision:{name} has no split {split!r}" + "; it has train and test" * ("train" in accepted))
