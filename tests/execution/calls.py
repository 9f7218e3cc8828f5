"""Functions that worker processes call in tests: they must be importable by name."""

import os
import time

from oodscope.base.errors import DataError


def square(memory, number):
    return number**2


def write(memory, start, content):
    memory[start : start + len(content)] = content


def fail(memory, number):
    raise DataError(f"no such thing: {number}")


def fail_unsendably(memory):
    class LocalError(Exception):
        pass

    raise LocalError("cannot travel")


def identity(memory):
    time.sleep(0.02)
    return os.getpid()


def sleep(memory, seconds):
    time.sleep(seconds)
