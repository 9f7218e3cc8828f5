"""Networks by name, with weights and the transforms that belong to them."""
