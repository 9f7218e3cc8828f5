"""What the workers of a Ray cluster do in tests; they import it by its name."""

import time

SECONDS = 0.3


def do(unit, plan):
    """Publish the number of the unit, after a while."""
    time.sleep(SECONDS)
    plan.home.create(f"results/{unit.spec['number']}", str(unit.spec["number"]).encode())
    if unit.spec["number"] == 99:
        raise ValueError("a number too far")
    return {"number": unit.spec["number"]}
