"""Train the judge of evaluation via generation: a classifier of digits, on the first 5,000 images of the SVHN pack.

    OODSCOPE_DATA=path/to/packs python benchmarks/svhn_judge.py --output judge.safetensors [--epochs 40]

It says of varied and generated digits whether they can still be read. Attacked images (5,000-9,999) it never saw; on
them its accuracy is printed.
"""

import argparse
import os
import tempfile
from pathlib import Path

import numpy as np
from safetensors.torch import save_file

import oodscope as oods
from evg_study import SEEN_BY_THE_GENERATOR
from oodscope.execution.console import ConsoleProgress
from oodscope.models.zoo.zoo import create_model
from oodscope.training.registry import create_recipe
from oodscope.training.train import train
from openood_cifar import TRANSFORM, pack


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--limit", type=int, default=SEEN_BY_THE_GENERATOR, help="training images")
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    digits = pack(Path(os.environ["OODSCOPE_DATA"]).resolve(), "svhn_test_10k")
    seen = digits.take(np.arange(options.limit), "digits")
    recipe = create_recipe("cross_entropy", epochs=options.epochs, augment={"pad": 4, "flip": False}, seed=77)

    def resnet18_32() -> object:
        return create_model("resnet18_32", num_classes=10)[0]

    done = train(
        resnet18_32, recipe, seen, TRANSFORM["cifar10"], folder=Path(tempfile.mkdtemp()), device=options.device,
        progress=ConsoleProgress(),
    )  # fmt: skip
    options.output.parent.mkdir(parents=True, exist_ok=True)
    save_file({key: value.cpu().contiguous() for key, value in done.model.state_dict().items()}, options.output)
    judge = oods.Classifier(done.model, TRANSFORM["cifar10"], device=options.device, name="digits")
    unseen = digits.take(np.arange(SEEN_BY_THE_GENERATOR, len(digits)), "unseen")
    scorer = oods.fit_scorer(judge, "msp", seen.take(np.arange(min(200, len(seen))), "val"))
    right = [each.class_index for each in scorer.predict(unseen.take(np.arange(1000), "some"))]
    print(f"accuracy on 1,000 unseen digits: {100 * np.mean(np.array(right) == unseen.labels[:1000]):.1f} %")


if __name__ == "__main__":
    main()
