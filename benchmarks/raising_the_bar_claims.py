"""What "Raising the Bar" (arXiv 2209.11960) claims of its tables 1 and 2, recomputed from the tables.

python benchmarks/raising_the_bar_claims.py
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.metrics.generated.raising_the_bar import ARCHITECTURES, ECE, SETS, SHIFTS, VITS, column

from oodscope.metrics.generated.rank_agreement import kendall, kendall_interval, kendall_within
from oodscope.metrics.interval import Interval


def ends(interval: Interval) -> str:
    return f"[{interval.low:.3f}, {interval.high:.3f}]"


def main() -> None:
    generated, vit = column("N-ImageNet"), np.isin(ARCHITECTURES, VITS)
    print("| set | not lower | τ, 32 rows | other rows | other networks | τ within | τ, 20 ViT rows |")
    print("|" + "---|" * 7)
    for name in SETS[:-1]:
        real = column(name)
        cells = (
            name,
            f"{int((generated >= real).sum())}",
            f"{kendall(generated, real):.3f}",
            ends(kendall_interval(generated, real)),
            ends(kendall_interval(generated, real, ARCHITECTURES)),
            f"{kendall_within(generated, real, ARCHITECTURES).pooled:.3f}",
            f"{kendall(generated[vit], real[vit]):.3f} {ends(kendall_interval(generated[vit], real[vit]))}",
        )
        print(f"| {' | '.join(cells)} |")
    print()
    for model, errors in ECE.items():
        above = [f"{shift} {error:.2f}" for shift, error in zip(SHIFTS[:-1], errors) if error > errors[-1]]
        print(f"{model}: S {errors[-1]:.2f}, exceeded by {', '.join(above) or 'none'}")


if __name__ == "__main__":
    main()
