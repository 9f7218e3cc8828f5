"""Results of other tools in, results of ours out."""
