"""What judges generated sets: Fréchet distance, mutual information, rank agreement, radar."""
