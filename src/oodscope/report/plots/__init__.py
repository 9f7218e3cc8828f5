"""Interactive plots as data: each function takes results and answers with figures that a page's script draws."""
