"""Images that occur twice, where one copy could be trained on and the other tested."""

import numpy as np
from numpy.typing import NDArray

from oodscope.base.errors import DataError
from oodscope.data.imageset import ImageSet


def repeated_rows(id_set: ImageSet, ood_set: ImageSet) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The ID rows and the OOD rows that have to go, so that no image stands on two sides of any fold.

    Of equal ID images the first stays: folds divide a class, so two copies may be parted. An OOD image goes if it is an
    ID image too, or stands under an earlier OOD class as well. Copies within one OOD class always travel together and
    stay. Images are compared by content digest, which is of pixels for arrays and of bytes for files.
    """
    known: set[bytes] = set()
    id_rows = []
    for row, digest in enumerate(id_set.digests()):
        if digest in known:
            id_rows.append(row)
        known.add(digest)
    class_of: dict[bytes, int] = {}
    ood_rows = []
    for row, (digest, label) in enumerate(zip(ood_set.digests(), ood_set.labels.tolist())):
        if digest in known or class_of.setdefault(digest, label) != label:
            ood_rows.append(row)
    return np.array(id_rows, dtype=np.int64), np.array(ood_rows, dtype=np.int64)


def refuse_repeats(
    id_set: ImageSet, ood_set: ImageSet, id_rows: NDArray[np.int64], ood_rows: NDArray[np.int64]
) -> None:
    """Raise if there are any, naming the first."""
    found = []
    if len(id_rows):
        first = id_set.sample_ids()[id_rows[0]]
        found.append(f"{len(id_rows)} in the ID set {id_set.name!r} repeat an earlier one (the first: {first})")
    if len(ood_rows):
        first = ood_set.sample_ids()[ood_rows[0]]
        found.append(
            f"{len(ood_rows)} in the OOD set {ood_set.name!r} are ID images too, or stand under two OOD classes "
            f"(the first: {first})"
        )
    if found:
        raise DataError(
            f"equal images could be trained on and tested: {'; '.join(found)}. Remove them, or duplicates='drop'"
        )
