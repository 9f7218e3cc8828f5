"""How different two images look, and how much an ensemble disagrees about one."""
