"""``python -m oodscope`` is ``oodscope``."""

from oodscope.cli import main

main()
