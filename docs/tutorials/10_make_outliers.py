"""
Make outliers
=============

Near-OOD images from the ID images alone: pieces of two classes joined into one image that is neither.
"""

import matplotlib.pyplot as plt

import oodscope as oods

bench = oods.load_benchmark("glyphs", images_per_class=40)

# %%
# The quickest way needs no training: tiles of an image change places, which keeps colours and strokes and loses the
# class.
from oodscope.data.jigsaw import jigsaw

shuffled = jigsaw(bench.id_val, pieces=2, seed=0)
figure, axes = plt.subplots(2, 8, figsize=(8, 2.2), layout="constrained")
for number in range(8):
    axes[0, number].imshow(bench.id_val.images([number])[0])
    axes[1, number].imshow(shuffled.images([number])[0])
for axis in axes.flat:
    axis.set_axis_off()
plt.show()

# %%
# Covariate-shifted ID images are the opposite: the class stays, the conditions change. A detector should not reject
# them more often than the classifier gets them wrong.
foggy = oods.corrupt(bench.id_test, "fog", severity=4)
print(foggy.name, len(foggy))

# %%
# Generators that are trained for the purpose, with checks whether their images are what they should be::
#
#     oodscope generate near --id cifar10 --method gan -o near
#     oodscope generate shifted --id cifar10 -o shifted
