"""Public datasets: cards, layouts on disk, downloads, checks, and the splits that benchmarks cut from them."""
