"""``oodscope data``: the public datasets that benchmarks are made of."""

from oodscope.cli.command import add, group
from oodscope.cli.data.audit import audit
from oodscope.cli.data.check import check
from oodscope.cli.data.lint import lint
from oodscope.cli.data.list import list_all
from oodscope.cli.data.pack import pack
from oodscope.cli.data.prepare import prepare
from oodscope.cli.data.show import show
from oodscope.cli.examples import EXAMPLES

data = group("data", "Find, download, verify and audit public datasets.")
add(data, list_all, name="list", examples=EXAMPLES["data list"])
add(data, show, examples=EXAMPLES["data show"])
add(data, prepare, examples=EXAMPLES["data prepare"])
add(data, pack, examples=EXAMPLES["data pack"])
add(data, check, examples=EXAMPLES["data check"])
add(data, lint, examples=EXAMPLES["data lint"])
add(data, audit, examples=EXAMPLES["data audit"])
