"""``oodscope generate``: images, and the generators that draw them."""

from oodscope.cli.command import add, group
from oodscope.cli.examples import EXAMPLES
from oodscope.cli.generate.again import again
from oodscope.cli.generate.gan import gan
from oodscope.cli.generate.judge import judge
from oodscope.cli.generate.near import near
from oodscope.cli.generate.shifted import shifted

generate = group("generate", "Make near-OOD or shifted images, or a generator.")
for command in (gan, near, shifted, judge, again):
    add(generate, command, examples=EXAMPLES[f"generate {command.__name__}"])
