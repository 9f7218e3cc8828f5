"""The training loop: streams of batches, checkpoints, history, and exact resumption."""
