"""Images that are corrupted when they are read."""

import hashlib
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from oodscope.data.corruptions.batch import corrupt_batch
from oodscope.data.corruptions.catalog import CORRUPTIONS
from oodscope.data.images.arrays import ArraySource
from oodscope.data.images.base import ImageSource
from oodscope.data.images.reframed import Presized
from oodscope.data.imageset import ImageSet
from oodscope.data.preprocess import Preprocess

ARITHMETIC = 1
"""Raised whenever the same recipe gives other pixels, so that nothing stored under the old ones is served."""

IMAGENET = Preprocess(size=224, resize=256)
_GREY = Preprocess(size=224, resize=256, mean=(0.5,), std=(0.5,))


class CorruptedSource(ImageSource):
    """Some images of a set, each under one corruption at one severity.

    Images of an array are corrupted as they are stored, and so are square ones of at most 224 pixels. Any
    other is first resized to a short side of 256 and cropped to 224 x 224, as those of ImageNet-C were.

    The pixels follow from the parent's and the recipe, so keys and digests are derived, not computed from pixels.

    Parameters
    ----------
    parent : the set that is corrupted.
    rows, corruptions, severities : one entry per image of this source: a row of ``parent``, and what happens to it.
    seed : of the random numbers; those of an image are named by its row in the parent's own source, so a subset
        of the parent is corrupted as the whole is.
    """

    def __init__(
        self,
        parent: ImageSet,
        rows: NDArray[np.int64],
        corruptions: Sequence[str],
        severities: NDArray[np.float64],
        seed: int,
    ) -> None:
        self.parent = parent
        self.rows = rows
        self.corruptions = tuple(corruptions)
        self.severities = severities
        self.seed = seed
        self._parent_names = parent.sample_ids()

    @property
    def comparable(self) -> bool:
        """Whether every corruption is the published one."""
        return all(CORRUPTIONS[name].comparable for name in set(self.corruptions))

    def __len__(self) -> int:
        return len(self.rows)

    def read(self, index: int) -> NDArray[np.uint8]:
        return self.read_many([index])[0]

    def pictures(self, indices: NDArray[np.int64]) -> list[NDArray[np.uint8]]:
        return self.read_many(indices.tolist())

    def read_many(self, indices: Sequence[int]) -> list[NDArray[np.uint8]]:
        """Some images; those of one corruption and size are corrupted together."""
        import torch

        originals = [self._fit(image) for image in self.parent.images(self.rows[list(indices)])]
        alike: dict[tuple[str, tuple[int, ...]], list[int]] = defaultdict(list)
        for place, index in enumerate(indices):
            alike[self.corruptions[index], originals[place].shape].append(place)
        found: dict[int, NDArray[np.uint8]] = {}
        for (name, _), places in alike.items():
            chosen = np.asarray(indices)[places]
            batch = torch.from_numpy(np.stack([originals[place] for place in places]))
            batch = batch[:, None] if batch.dim() == 3 else batch.permute(0, 3, 1, 2)
            keys = self.parent.rows[self.rows[chosen]]
            corrupted = corrupt_batch(batch, name, self.severities[chosen], self.seed, keys).permute(0, 2, 3, 1).numpy()
            shaped = corrupted.reshape(-1, *originals[places[0]].shape)
            found.update(zip(places, shaped.view(Presized) if isinstance(originals[places[0]], Presized) else shaped))
        return [found[place] for place in range(len(originals))]

    def name(self, index: int) -> str:
        return f"{self._parent_names[self.rows[index]]}#{self.corruptions[index]}-{self.severities[index]:g}"

    def _fit(self, image: NDArray[np.uint8]) -> NDArray[np.uint8]:
        if image.ndim == 3 and image.shape[2] == 4:
            image = image[:, :, :3]
        height, width = image.shape[:2]
        if isinstance(self.parent.source, ArraySource) or height == width <= IMAGENET.size:
            return image
        crop = IMAGENET if image.ndim == 3 and image.shape[2] == 3 else _GREY
        fitted = crop.crop(image).reshape(IMAGENET.size, IMAGENET.size, *image.shape[2:])
        # the network's own resize would show it a zoomed-in copy
        return fitted.view(Presized)

    def _digest_all(self) -> list[bytes]:
        originals = self.parent.digests()
        keys = self.parent.rows[self.rows]
        versions = {name: CORRUPTIONS[name].version for name in set(self.corruptions)}
        # the first version is not written, so that digests stay what they were before versions
        named = {name: name if number == 1 else f"{name}@{number}" for name, number in versions.items()}
        return [
            hashlib.blake2b(
                originals[row] + f"corrupted {ARITHMETIC} {self.seed} {key} {named[name]} {severity!r}".encode(),
                digest_size=16,
            ).digest()
            for row, key, name, severity in zip(self.rows, keys, self.corruptions, self.severities.tolist())
        ]
