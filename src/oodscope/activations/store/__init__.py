"""Where activations are kept by content, column by column, and published."""
