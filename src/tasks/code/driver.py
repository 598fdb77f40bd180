"""Runs one test of a solution. What it prints is judged outside of the sandbox, so that nothing in here knows
what would be right: a solution that tampers with this process only makes its own answer worse."""

import json
import sys

PRELUDE = """
import bisect, collections, copy, datetime, functools, heapq, itertools, math, operator, random, re, string, sys
from bisect import *
from collections import *
from copy import *
from functools import *
from heapq import *
from itertools import *
from math import *
from operator import *
from typing import *
from builtins import pow
"""


def load(path, name):
    with open(path, encoding="utf-8") as file:
        code = compile(file.read(), "solution.py", "exec")
    scope = {"__name__": name, "__builtins__": __builtins__}
    exec(PRELUDE, scope)
    sys.setrecursionlimit(50_000)
    exec(code, scope)
    return scope


def plain(value):
    """As JSON can say it."""
    if isinstance(value, (set, frozenset)):
        return sorted(map(plain, value), key=repr)
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (str, bytes, bool, int, float, type(None))):
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    if isinstance(value, complex):
        return str(value)
    return [plain(inner) for inner in value]


def call(path, name):
    # What the solution prints goes to stderr: standard output is for the value alone.
    answer = sys.stdout
    sys.stdout = sys.stderr
    arguments = json.load(sys.stdin)
    scope = load(path, "solution")
    owner = scope.get("Solution")
    function = getattr(owner(), name, None) if isinstance(owner, type) else None
    value = (function or scope[name])(*arguments)
    json.dump(plain(value), answer)
    answer.flush()


mode, path = sys.argv[1:3]
if mode == "check":
    print("ready")
elif mode == "stdin":
    load(path, "__main__")
else:
    call(path, sys.argv[3])
