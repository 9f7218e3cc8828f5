"""Bad job files, benchmark files and command lines."""

from collections.abc import Iterator

from tests.hostile.case import Case

JOB = {
    "benchmark": {"id_test": "GOOD/test.npz", "near": ["GOOD/near.npz"], "transform": {"size": 8}},
    "model": "python:goodnet:build",
    "detectors": ["msp"],
    "device": "cpu",
    "output": "out",
}
EVALUATE = (
    *("evaluate", "--model", "python:goodnet:build", "--id-test", "GOOD/test.npz", "--near", "GOOD/near.npz"),
    *("--detectors", "msp", "--device", "cpu", "--transform", "{size: 8}", "--output", "out"),
)
FIT = (
    *("fit", "--model", "python:goodnet:build", "--detector", "msp", "--id-cal", "GOOD/test.npz"),
    *("--device", "cpu", "--transform", "{size: 8}"),
)
NPZ = {"source": "npz", "path": "test.npz"}
BENCHMARK = {
    "name": "own",
    "version": "1",
    "root": "GOOD",
    "transform": {"size": 8},
    "sets": {"id_test": NPZ, "near": {"other": {"source": "npz", "path": "near.npz"}}},
}
DEEP = 2000

TEXTS: dict[str, tuple[str | bytes, tuple[str, ...]]] = {
    "repeated key": ("detectors: [msp]\ndetectors: [knn]\n", ("'detectors'", "twice", "line 2")),
    "repeated nested key": ("benchmark: {near: [a], near: [b]}\n", ("'near'", "twice")),
    "repeated quoted key": ('seed: 1\n"seed": 2\n', ("'seed'", "twice")),
    "deep list": ("a: " + "[" * DEEP + "]" * DEEP, ("nested",)),
    "deep mapping": ("".join(f"{' ' * n}a:\n" for n in range(200)), ("nested",)),
    "unclosed list": ("a: [1, 2\n", ("YAML", "line")),
    "unclosed quote": ('a: "x\n', ("YAML", "line")),
    "tab": ("a:\n\t- 1\n", ("YAML", "line 2")),
    "two colons": ("a: b: c\n", ("YAML", "line 1")),
    "two documents": ("a: 1\n---\nb: 2\n", ("YAML", "document")),
    "binary": (bytes(range(256)), ("YAML",)),
    "not UTF-8": (b"name: caf\xe9\n", ("YAML",)),
    "null byte": ("a: \0\n", ("YAML",)),
    "python object": ("a: !!python/object/apply:os.system ['touch ran']\n", ("YAML", "tag")),
    "python name": ("a: !!python/name:os.system\n", ("YAML", "tag")),
    "unknown tag": ("a: !secret x\n", ("YAML", "tag")),
    "alias bomb": (
        "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
        + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9)),
        ("more than", "values"),
    ),
    "alias of itself": ("a: &a [*a]\n", ("alias",)),
    "unknown alias": ("a: *b\n", ("YAML", "alias")),
    "unhashable key": ("? [1, 2]\n: x\n", ("YAML", "key")),
    "impossible date": ("a: 2026-13-40\n", ("YAML",)),
    "a tag that does not fit": ('a: !!bool "perhaps"\n', ("YAML", "tag")),
    "a time that is none": ('a: !!timestamp "soon"\n', ("YAML", "tag")),
    "a number of 5,000 digits": ("seed: " + "9" * 5000 + "\n", ("YAML", "digits")),
    "a merge of a number": ("<<: 5\n", ("YAML", "merging")),
    "a merge of itself, often": (
        "a: &a0 {x: 1}\n" + "".join(f"b{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 9)),
        ("more than", "values"),
    ),
    "a key of a million letters": ("? " + "x" * 1_000_000 + "\n: 1\n", ("xxx",)),
    "a list": ("- a\n- b\n", ("keys",)),
    "a word": ("word\n", ("keys",)),
    "a number": ("5\n", ("keys",)),
    "empty": ("", ("keys",)),
    "only a comment": ("# nothing\n", ("keys",)),
    "too large": ("# " + "x" * (5 * 2**20) + "\n", ("bytes",)),
}
"""YAML that is refused whatever it is meant to be."""


def _with(base: dict, **changes: object) -> dict:
    """A copy with other values; dots go down, ``None`` of the type removes."""
    content = {key: dict(value) if isinstance(value, dict) else value for key, value in base.items()}
    for path, value in changes.items():
        place, *names = path.split("__")
        inner = content
        for name in names:
            inner[place] = dict(inner[place])
            inner, place = inner[place], name
        if value is REMOVED:
            inner.pop(place)
        else:
            inner[place] = value
    return content


REMOVED = object()

JOBS: dict[str, tuple[dict, tuple[str, ...]]] = {
    "unknown key": ({"detektors": ["msp"]}, ("'detektors'", "detectors")),
    "unknown nested key": ({"benchmark__nearr": []}, ("nearr",)),
    "no benchmark": ({"benchmark": REMOVED}, ("benchmark",)),
    "no model": ({"model": REMOVED}, ("model",)),
    "seed -1": ({"seed": -1}, ("seed",)),
    "seed 2^70": ({"seed": 2**70}, ("seed",)),
    "seed a word": ({"seed": "lucky"}, ("seed",)),
    "seed a list": ({"seed": [1]}, ("seed",)),
    "batch size 0": ({"batch_size": 0}, ("batch_size",)),
    "batch size -5": ({"batch_size": -5}, ("batch_size",)),
    "batch size a word": ({"batch_size": "many"}, ("batch_size",)),
    "device a word": ({"device": "gpu7"}, ("gpu7",)),
    "device a number": ({"device": 3}, ("device",)),
    "device without memory": ({"device": "meta"}, ("'meta'", "cpu")),
    "device of no machine": ({"device": "vulkan"}, ("'vulkan'", "cpu")),
    "device a second processor": ({"device": "cpu:5"}, ("'cpu:5'",)),
    "device of another maker": ({"device": "xpu"}, ("xpu",)),
    "device not there": ({"device": "cuda:99"}, ("cuda:99",)),
    "detector unknown": ({"detectors": ["mspp"]}, ("mspp",)),
    "detector empty": ({"detectors": [""]}, ("detector",)),
    "detector a number": ({"detectors": [5]}, ("detectors",)),
    "detectors a number": ({"detectors": 5}, ("detectors",)),
    "detectors null": ({"detectors": None}, ("detectors",)),
    "detector parameter unknown": ({"detectors": [{"knn": {"kk": 3}}]}, ("knn", "kk")),
    "detector parameter a list": ({"detectors": [{"knn": [3]}]}, ("detectors",)),
    "detector combined wrongly": ({"detectors": ["knn+msp"]}, ("knn+msp",)),
    "detector path": ({"detectors": ["../../etc/passwd"]}, ("passwd",)),
    "protocol unknown": ({"protocols": ["standrad"]}, ("standrad", "standard")),
    "protocol option unknown": ({"protocols": [{"human_centric": {"x": 1}}]}, ("human_centric", "x")),
    "protocol option wrong": ({"protocols": [{"human_centric": {"train_rows": 0}}]}, ("train_rows",)),
    "protocols a word": ({"protocols": "standard"}, ("protocols",)),
    "tune unknown": ({"tune": "test"}, ("test",)),
    "tune a list": ({"tune": ["default"]}, ("tune",)),
    "output a number": ({"output": 5}, ("output",)),
    "output too long": ({"output": "x" * 5000}, ("too long",)),
    "output with a null": ({"output": "a\0b"}, ("output", "null")),
    "output too long below a folder": ({"output": "a/b/" + "x" * 300}, ("too long",)),
    "images per class 0": ({"images_per_class": 0}, ("images_per_class",)),
    "skip unreadable a word": ({"skip_unreadable": "perhaps"}, ("skip_unreadable",)),
    "as seeds with one": ({"as_seeds": True}, ("as_seeds",)),
    "model unknown": ({"model": {"architecture": "resnet9000", "weights": "pretrained"}}, ("resnet9000",)),
    "model a long text": ({"model": {"architecture": "x" * 300, "weights": "pretrained"}}, ("unknown model",)),
    "model of no module": ({"model": "python:nosuchmodule:build"}, ("nosuchmodule",)),
    "model of no function": ({"model": "python:goodnet:bild"}, ("bild", "build")),
    "model that is no function": ({"model": "python:goodnet:text"}, ("text",)),
    "model without a function": ({"model": "python:goodnet"}, ("python:goodnet",)),
    "model that raises": ({"model": "python:goodnet:fails"}, ("RuntimeError", "no such luck", "-v")),
    "model that exits": ({"model": "python:goodnet:leaves"}, ("SystemExit",)),
    "model that is none": ({"model": "python:goodnet:wrong"}, ("int",)),
    "model key unknown": ({"model": {"architecture": "small_cnn", "wieghts": "x"}}, ("wieghts",)),
    "model members 0": ({"model": {"architecture": "small_cnn", "members": 0}}, ("members",)),
    "weights not there": ({"model": {"architecture": "small_cnn", "weights": "no.safetensors"}}, ("no.safetensors",)),
    "recipe unknown": ({"model": {"architecture": "small_cnn", "train": {"recipe": "magic"}}}, ("magic",)),
    "epochs 0": ({"model": {"architecture": "small_cnn", "train": {"epochs": 0}}}, ("epochs",)),
    "classes not there": ({"classes": "names.txt"}, ("names.txt",)),
    "benchmark unknown": ({"benchmark": "cifar11"}, ("cifar11",)),
    "benchmark file not there": ({"benchmark": "own.yaml"}, ("own.yaml",)),
    "no ID test": ({"benchmark__id_test": REMOVED}, ("id_test",)),
    "ID test not there": ({"benchmark__id_test": "missing.npz"}, ("missing.npz",)),
    "ID test a list": ({"benchmark__id_test": ["a", "b"]}, ("id_test",)),
    "near a number": ({"benchmark__near": 5}, ("near",)),
    "near not there": ({"benchmark__near": ["missing"]}, ("missing",)),
    "transform size 0": ({"benchmark__transform": {"size": 0}}, ("size",)),
    "transform size 10^8": ({"benchmark__transform": {"size": 10**8}}, ("size",)),
    "transform resize 10^8": ({"benchmark__transform": {"size": 8, "resize": 10**8}}, ("resize",)),
    "transform size negative": ({"benchmark__transform": {"size": -8}}, ("size",)),
    "transform of no filter": ({"benchmark__transform": {"size": 8, "interpolation": "magic"}}, ("interpolation",)),
    "transform of one mean": ({"benchmark__transform": {"size": 8, "mean": [0.5]}}, ("mean", "1 and 3")),
    "transform std 0": ({"benchmark__transform": {"size": 8, "std": [0, 0, 0]}}, ("std",)),
    "transform mean NaN": ({"benchmark__transform": {"size": 8, "mean": [float("nan")] * 3}}, ("mean",)),
    "a set called mean": ({"benchmark__near": {"mean": "GOOD/near.npz"}}, ("'mean'", "rename")),
    "transform without size": ({"benchmark__transform": {}}, ("size",)),
}
"""Changes of a good job."""

FAILING_JOBS = {
    "output too long",
    "output too long below a folder",
    "output with a null",
    "ID test not there",
    "benchmark file not there",
    "classes not there",
    "a set called mean",
    "device not there",
    "device of another maker",
    "model that exits",
    "model that is none",
    "model that raises",
    "near not there",
    "weights not there",
}
"""Jobs that can be meant, over what is not there or fails: status 1; all others are bad usage."""

BENCHMARKS: dict[str, tuple[dict, tuple[str, ...]]] = {
    "name with a path": ({"name": "../escaped"}, ("../escaped",)),
    "name absolute": ({"name": "/tmp/escaped"}, ("/tmp/escaped",)),
    "name hidden": ({"name": ".hidden"}, (".hidden",)),
    "name with a backslash": ({"name": "a\\b"}, ("name",)),
    "name empty": ({"name": ""}, ("name",)),
    "name with an escape": ({"name": "a\x1b[2Jb"}, ("name",)),
    "name with a line break": ({"name": "a\nb"}, ("name",)),
    "name too long": ({"name": "x" * 500}, ("name", "200")),
    "name a number": ({"name": 5}, ("name",)),
    "no name": ({"name": REMOVED}, ("name",)),
    "no version": ({"version": REMOVED}, ("version",)),
    "version a number": ({"version": 1}, ("version",)),
    "no sets": ({"sets": REMOVED}, ("sets",)),
    "sets a list": ({"sets": []}, ("sets",)),
    "no ID test": ({"sets__id_test": REMOVED}, ("id_test",)),
    "role unknown": ({"sets__nearr": {}}, ("nearr",)),
    "source unknown": ({"sets__id_test": {"source": "magic"}}, ("magic",)),
    "source missing": ({"sets__id_test": {"path": "x"}}, ("source",)),
    "source a number": ({"sets__id_test": {"source": 5}}, ("source",)),
    "path missing": ({"sets__id_test": {"source": "npz"}}, ("path",)),
    "path not there": ({"sets__id_test": {"source": "npz", "path": "missing.npz"}}, ("missing.npz",)),
    "path a folder": ({"sets__id_test": {"source": "npz", "path": "pictures"}}, ("pictures",)),
    "folder not there": ({"sets__id_test": {"source": "folder", "path": "missing"}}, ("missing",)),
    "folder a file": ({"sets__id_test": {"source": "folder", "path": "test.npz"}}, ("test.npz",)),
    "list not there": ({"sets__id_test": {"source": "list", "path": "missing.txt"}}, ("missing.txt",)),
    "array unknown": ({"sets__id_test": {"source": "npz", "path": "test.npz", "images": "imgs"}}, ("imgs", "images")),
    "labels for images": ({"sets__id_test": {"source": "npz", "path": "test.npz", "images": "labels"}}, ("id_test",)),
    "torchvision unknown": (
        {"sets__id_test": {"source": "torchvision", "dataset": "Cifar11"}},
        ("Cifar11",),
    ),
    "torchvision not there": ({"sets__id_test": {"source": "torchvision", "dataset": "CIFAR10"}}, ("CIFAR10",)),
    "public dataset unknown": (
        {"sets__id_test": {"source": "dataset", "dataset": "cifar11", "split": "test", "count": 1}},
        ("cifar11",),
    ),
    "braces beyond reason": (
        {"sets__id_test": {"source": "webdataset", "path": "{0..99999}-{0..99999}.tar"}},
        ("{0..99999}",),
    ),
    "braces downwards": ({"sets__id_test": {"source": "webdataset", "path": "{9..1}.tar"}}, ("{9..1}",)),
    "braces of many digits": (
        {"sets__id_test": {"source": "webdataset", "path": "{0..99999999999999999999}.tar"}},
        ("too far",),
    ),
    "shards missing": ({"sets__id_test": {"source": "webdataset", "path": "{0..3}.tar"}}, ("4", "missing")),
    "classes wrong": ({"classes": 5}, ("classes",)),
    "root not there": ({"root": "nowhere"}, ("nowhere",)),
}
"""Changes of a good benchmark file."""

FAILING_BENCHMARKS = {
    "array unknown",
    "folder a file",
    "folder not there",
    "labels for images",
    "list not there",
    "path a folder",
    "path not there",
    "root not there",
    "shards missing",
    "torchvision not there",
}
"""Those that can be meant, over files that are not there or hold something else: status 1."""

OPTIONS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "no command": ((), ("command is missing", "oodscope -h")),
    "unknown command": (("evalute",), ("evalute",)),
    "unknown option": ((*EVALUATE, "--fast"), ("--fast",)),
    "seed -1": ((*EVALUATE, "--seed", "-1"), ("seed",)),
    "seed a word": ((*EVALUATE, "--seed", "x"), ("seed",)),
    "seed beyond": ((*EVALUATE, "--seed", str(2**65)), ("seed",)),
    "batch size 0": ((*EVALUATE, "--batch-size", "0"), ("batch-size",)),
    "batch size a word": ((*EVALUATE, "--batch-size", "x"), ("batch-size",)),
    "device unknown": ((*EVALUATE, "--device", "tpu:x"), ("tpu:x",)),
    "detector unknown": ((*EVALUATE, "--detectors", "msp,nope"), ("nope",)),
    "protocol unknown": ((*EVALUATE, "--protocols", "strange_one"), ("strange_one",)),
    "tune unknown": ((*EVALUATE, "--tune", "grid"), ("grid",)),
    "transform no mapping": ((*EVALUATE, "--transform", "224"), ("transform",)),
    "transform broken": ((*EVALUATE, "--transform", "{size: "), ("transform",)),
    "transform of 10^8": ((*EVALUATE, "--transform", "{size: 100000000}"), ("size",)),
    "transform repeated": ((*EVALUATE, "--transform", "{size: 8, size: 9}"), ("size",)),
    "transform unknown key": ((*EVALUATE, "--transform", "{sise: 8}"), ("sise",)),
    "model unknown": ((*EVALUATE, "--model", "resnet9000", "--weights", "pretrained"), ("resnet9000",)),
    "model of no library": ((*EVALUATE, "--model", "magic:net", "--weights", "pretrained"), ("magic:net",)),
    "timm model unknown": ((*EVALUATE, "--model", "timm:nosuchnet", "--weights", "pretrained"), ("nosuchnet",)),
    "torchvision model unknown": (
        (*EVALUATE, "--model", "torchvision:nosuchnet", "--weights", "pretrained"),
        ("nosuchnet",),
    ),
    "set not there": ((*EVALUATE, "--near", "nowhere"), ("nowhere",)),
    "set empty": ((*EVALUATE, "--near", ""), ("no image",)),
    "set of no source": ((*EVALUATE, "--near", "torchvision:Cifar11"), ("Cifar11",)),
    "benchmark and sets": ((*EVALUATE, "--benchmark", "glyphs"), ("benchmark",)),
    "benchmark unknown": (
        ("evaluate", "--model", "python:goodnet:build", "--benchmark", "cifar11", "--output", "out"),
        ("cifar11",),
    ),
    "root not there": (
        ("evaluate", "--model", "small_cnn", "--benchmark", "cifar10", "--root", "nowhere", "--output", "out"),
        ("--weights",),
    ),
    "weights not there": ((*EVALUATE, "--model", "small_cnn", "--weights", "no.pt"), ("no.pt",)),
    "classes not there": ((*EVALUATE, "--classes", "names.txt"), ("names.txt",)),
    "activations without equals": (("evaluate", "--activations", "id_test", "--output", "out"), ("id_test",)),
    "activations of no role": (("evaluate", "--activations", "nar=GOOD/near.npz", "--output", "out"), ("nar",)),
    "activations not there": (("evaluate", "--activations", "id_test=no.npz", "--output", "out"), ("no.npz",)),
    "scores not there": (("evaluate", "--scores", "no.csv", "--output", "out"), ("no.csv",)),
    "job not there": (("run", "no.yaml"), ("no.yaml",)),
    "job a folder": (("run", "GOOD"), ("unknown job",)),
    "packaged job unknown": (("run", "dmeo"), ("dmeo",)),
    "table of nothing": (("table", "nowhere"), ("nowhere",)),
    "table of a file": (("table", "GOOD/test.npz"), ("test.npz",)),
    "table format unknown": (("table", "GOOD/run", "--format", "docx"), ("docx",)),
    "table metric unknown": (("table", "GOOD/run", "--metric", "aurocc"), ("aurocc",)),
    "table protocol unknown": (("table", "GOOD/run", "--protocol", "nope"), ("nope",)),
    "compare nothing": (("compare", "nowhere"), ("nowhere",)),
    "compare unknown detector": (("compare", "GOOD/run", "--detectors", "nope"), ("nope",)),
    "report of nothing": (("report", "nowhere", "--output", "r.html"), ("nowhere",)),
    "figure unknown": (("figure", "nosuch", "GOOD/run", "--output", "f.pdf"), ("nosuch",)),
    "predict nothing": (("predict", "no.oodscope", "GOOD/pictures"), ("no.oodscope",)),
    "predict two formats": (("predict", "GOOD/good.oodscope", "GOOD/pictures", "--json", "--csv"), ("--csv",)),
    "predict no images": (
        ("predict", "GOOD/good.oodscope", "nowhere", "--model", "python:goodnet:build"),
        ("1 image could not be read",),
    ),
    "predict without its network": (("predict", "GOOD/good.oodscope", "GOOD/pictures"), ("--model",)),
    "list of nothing": (("list", "nosuch"), ("nosuch",)),
    "serve without a token": (("serve", "--submissions", "--board", "b"), ("token",)),
    "serve on no port": (("serve", "--port", "99999"), ("port",)),
    "serve on no host": (("serve", "--host", "no.such.host.invalid", "--port", "0"), ("no.such.host.invalid",)),
    "verify nothing": (("leaderboard", "verify", "nowhere"), ("nowhere",)),
    "build nothing": (("leaderboard", "build", "nowhere"), ("nowhere",)),
    "submit under a reserved id": (
        ("leaderboard", "submit", "GOOD/run", "--method", "M", "--detector", "knn", "--id", "errata.json"),
        ("errata.json",),
    ),
    "submit under a published id": (
        *(("leaderboard", "submit", "GOOD/run", "--method", "M", "--detector", "knn", "--id", "openood-v1.5-x"),),
        ("openood-v1.5-x",),
    ),
    "submit outside": (
        ("leaderboard", "submit", "GOOD/run", "--method", "M", "--detector", "knn", "--id", "../x"),
        ("id",),
    ),
    "submit of no track": (
        ("leaderboard", "submit", "GOOD/run", "--method", "M", "--detector", "knn", "--track", "magic"),
        ("magic",),
    ),
    "submit of no run": (("leaderboard", "submit", "nowhere", "--method", "M"), ("nowhere",)),
    "supersede nothing": (("leaderboard", "supersede", "a", "b", "--reason", "r", "--board", "nowhere"), ("nowhere",)),
    "rerun nothing": (("leaderboard", "rerun", "nowhere", "--activations", "x"), ("nowhere",)),
    "fit without data": (("fit", "--model", "small_cnn", "--detector", "msp", "--output", "x.oodscope"), ("--id-cal",)),
    "fit into a name too long": ((*FIT, "--output", "x" * 300 + ".oodscope"), ("too long",)),
    "fit into a folder": ((*FIT, "--output", "."), ("is a folder",)),
    "export into a name too long": (("export", "GOOD/good.oodscope", "--onnx", "x" * 300 + ".onnx"), ("too long",)),
    "output too long": ((*EVALUATE[:-1], "x" * 300), ("too long",)),
    "output too long below a folder": ((*EVALUATE[:-1], "a/b/" + "x" * 300), ("too long",)),
    "crossval without a plan": (("crossval",), ("--model",)),
}
"""Command lines over good files."""

FAILING = {
    "export into a name too long",
    "fit into a folder",
    "fit into a name too long",
    "output too long",
    "output too long below a folder",
    "activations not there",
    "build nothing",
    "classes not there",
    "compare nothing",
    "job not there",
    "predict no images",
    "predict nothing",
    "report of nothing",
    "rerun nothing",
    "scores not there",
    "serve on no host",
    "serve without a token",
    "set empty",
    "set not there",
    "submit of no run",
    "supersede nothing",
    "table of a file",
    "table of nothing",
    "verify nothing",
    "weights not there",
}
"""Those that can be meant, over what is not there or cannot be used: status 1; all others are bad usage."""


def job_cases() -> Iterator[Case]:
    for name, (text, tells) in TEXTS.items():
        yield Case(f"job: {name}", ("run", "job.yaml"), ("job.yaml", *tells), {"job.yaml": text}, 2)
    for name, (changes, tells) in JOBS.items():
        yield Case(
            f"job: {name}",
            ("run", "job.yaml"),
            tells,
            {"job.yaml": _with(JOB, **changes)},
            1 if name in FAILING_JOBS else 2,
        )


def benchmark_cases() -> Iterator[Case]:
    argv = ("evaluate", "--model", "python:goodnet:build", "--benchmark", "own.yaml", "--detectors", "msp")
    argv += ("--device", "cpu", "--output", "out")
    for name, (text, tells) in TEXTS.items():
        yield Case(f"benchmark: {name}", argv, ("own.yaml", *tells), {"own.yaml": text}, 2)
    for name, (changes, tells) in BENCHMARKS.items():
        status = 1 if name in FAILING_BENCHMARKS else 2
        yield Case(f"benchmark: {name}", argv, tells, {"own.yaml": _with(BENCHMARK, **changes)}, status)


def option_cases() -> Iterator[Case]:
    for name, (argv, tells) in OPTIONS.items():
        yield Case(f"options: {name}", argv, tells, {}, 1 if name in FAILING else 2)
    for name in ("out", "out/deeper"):
        argv = tuple(name if each == "out" else each for each in EVALUATE)
        yield Case(f"options: output {name} is below a file", argv, ("out",), {"out": "a file"})
