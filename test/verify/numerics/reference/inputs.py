"""Reads what test/support/reference.ts wrote: numbers, and arrays by name."""

import json
import os
import sys

import numpy


def read():
    folder = sys.argv[1]
    with open(os.path.join(folder, "input.json")) as file:
        inputs = json.load(file)
    for name, value in inputs.items():
        if isinstance(value, dict):
            inputs[name] = numpy.fromfile(os.path.join(folder, name), dtype=value["array"])
    return inputs
