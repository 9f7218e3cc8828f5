"""
First evaluation: your folder, your network
===========================================

From installation to a report about your own network on your own images, in five commands and a few minutes::

    pip install oodscope            # in a checkout: pip install .

The other four are below. Nothing of yours is changed, and nothing leaves your machine.
"""

# %%
# You have images in folders, a folder for each class, and a trained network. Here both are made from the embedded
# benchmark ``glyphs`` first: ``train`` and ``test`` show the classes that the network knows (in-distribution, ID),
# ``letters`` shows others that look like them (near-OOD), ``textures`` something else altogether (far-OOD).
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import torch
from PIL import Image

import oodscope as oods

work = Path(tempfile.mkdtemp())
bench = oods.load_benchmark("glyphs", images_per_class=150)
textures = next(images for images in bench.far if images.name == "textures")
sets = {"train": bench.id_train, "test": bench.id_test, "letters": bench.near[0], "textures": textures}
for folder, images in sets.items():
    for number, pixels in enumerate(images.images(range(len(images)))):
        place = work / folder / images.class_names[images.labels[number]].replace(" ", "_")
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(place / f"{number:05}.png")

own = oods.own_benchmark(
    id_train=work / "train", id_test=work / "test", near=[work / "letters"], transform=bench.transform
)
network, _ = oods.create_model("small_cnn", num_classes=len(own.class_names))
recipe = oods.create_recipe(
    "cross_entropy", epochs=8, batch_size=32, weight_decay=0.001, warmup_epochs=1, augment={"pad": 0, "flip": False}
)
trained = oods.train(network, recipe, own.id_train, own.transform, device="cpu")
torch.save(trained.model.state_dict(), work / "net.pt")

figure, axes = plt.subplots(3, 8, figsize=(8, 3.3), layout="constrained")
for row, folder in zip(axes, ("test", "letters", "textures"), strict=True):
    files = sorted((work / folder).rglob("*.png"))
    for axis, path in zip(row, files[:: len(files) // 8], strict=False):
        axis.imshow(Image.open(path))
        axis.set_axis_off()
    row[0].set_title(folder, loc="left", fontsize=9)
plt.show()

# %%
# Your network is a function without arguments that returns a module with its weights loaded, in a Python file of the
# working folder:
(work / "mynet.py").write_text(
    """
import torch
import oodscope as oods

def build():
    network, _ = oods.create_model("small_cnn", num_classes=20)
    network.load_state_dict(torch.load("net.pt", weights_only=True))
    return network
"""
)


def shell(command):
    """Run a command of the working folder, and show what it prints."""
    print("$", command, "\n")
    words = [sys.executable, "-m", *shlex.split(command)]
    done = subprocess.run(words, cwd=work, check=True, stdout=subprocess.PIPE, text=True)
    print(done.stdout)


# %%
# Evaluate four detectors on it. Every image goes through the network once, whatever the number of detectors; the
# transform is the one that your network was trained with.
shell(
    "oodscope evaluate --model python:mynet:build --id-train train --id-test test "
    "--near letters --far textures --detectors msp,ebo,knn,vim -o runs/mine "
    "--transform '{size: 32, mean: [0.5, 0.5, 0.5], std: [0.25, 0.25, 0.25]}'"
)

# %%
# What passes, if 95 % of the ID images are kept?
shell("oodscope table runs/mine --metric fpr95_id_positive")

# %%
# Which differences are more than noise, and for which population?
shell("oodscope compare runs/mine --detectors knn,msp")

# %%
# Everything on one page, with plots, the images that fool each detector, and provenance. It is one file that asks no
# host for anything: send it to a colleague.
shell("oodscope report runs/mine -o report.html")
print(f"report.html: {(work / 'report.html').stat().st_size / 1e6:.1f} MB")

# %%
# Next: :doc:`the same in Python <02_own_folder_own_network>`, :doc:`what the report says <11_read_the_report>`,
# :doc:`a threshold to ship <06_threshold_to_ship>`.
