"""What trainings were measured to take on a GPU, for those who plan one."""

IMAGES_PER_SECOND = {
    "cross_entropy": 42_566, "arpl": 42_459, "augmix_jsd": 12_851, "conf_branch": 42_010, "cutmix": 41_868,
    "fine_tune": 42_235, "logitnorm": 42_821, "mixoe": 21_774, "mixup": 42_529, "outlier_exposure": 19_415,
    "regmixup": 27_174, "rotpred": 15_556, "t2fnorm": 42_603,
}  # fmt: skip
"""Training images a second on one NVIDIA H200, ResNet-18 at 32 px, bf16, the step recorded
(``docs/results/train-speed.md``)."""

CIFAR = 50_000
"""Training images of CIFAR."""


def gpu_minutes(recipe: str, epochs: int) -> float | None:
    """Minutes that so many epochs of CIFAR take on that GPU; ``None`` where it was not measured."""
    speed = IMAGES_PER_SECOND.get(recipe)
    return None if speed is None else round(epochs * CIFAR / speed / 60, 1)
