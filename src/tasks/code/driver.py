"""Runs one test of a solution. What it prints is judged outside of the sandbox, so that nothing in here knows
what would be right: a solution that tampers with this process only makes its own answer worse."""

import json
import os
import sys
import types

# Judges run solutions below such imports, and datasets have solutions that count on them. The builtins come last: some
# of the others take their names.
PRELUDE = """
from typing import *
import bisect, collections, copy, datetime, functools, heapq, itertools, math, operator, random, re, string, sys
from bisect import *
from collections import *
from copy import *
from functools import *
from heapq import *
from itertools import *
from math import *
from operator import *
from builtins import *


class ListNode:
    def __init__(self, val=0, next=None):
        self.val, self.next = val, next


class TreeNode:
    def __init__(self, val=0, left=None, right=None):
        self.val, self.left, self.right = val, left, right
"""


def load(path, name):
    """A module of the solution, as Python would make it of its file: dataclasses, pickle and multiprocessing look for
    the module by its name."""
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    module = types.ModuleType(name)
    module.__file__ = path
    module.__builtins__ = __builtins__
    sys.modules[name] = module
    sys.argv = [path]
    scope = module.__dict__
    exec(PRELUDE, scope)
    sys.setrecursionlimit(50_000)
    exec(code, scope)
    return scope


def nodes(value, scope):
    """Arguments with the lists and trees that LeetCode's problems are about, in place of the lists of their values."""
    if isinstance(value, list):
        return [nodes(inner, scope) for inner in value]
    if not isinstance(value, dict):
        return value
    if "__list_node__" in value:
        head = None
        for item in reversed(value["__list_node__"]):
            head = scope["ListNode"](item, head)
        return head
    if "__tree_node__" in value:
        return tree(value["__tree_node__"], scope["TreeNode"])
    return {key: nodes(inner, scope) for key, inner in value.items()}


def tree(values, node):
    """Level by level, with None for a child that is missing."""
    made = [None if value is None else node(value) for value in values]
    waiting = iter([child for child in made if child is not None])
    for index, child in enumerate(made[1:]):
        if index % 2 == 0:
            parent = next(waiting)
            parent.left = child
        else:
            parent.right = child
    return made[0] if made else None


def values_of_list(node):
    values = []
    while node is not None and len(values) < 1_000_000:
        values.append(node.val)
        node = node.next
    return values


def values_of_tree(root):
    values, level = [], [root]
    while level and len(values) < 1_000_000:
        values += [None if node is None else node.val for node in level]
        level = [child for node in level if node is not None for child in (node.left, node.right)]
    while values and values[-1] is None:
        values.pop()
    return values


def plain(value):
    """As JSON can say it, and the judge compares as Python would."""
    if value is None or isinstance(value, (str, bool)):
        return value if value is None or type(value) in (str, bool) else str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, (bytes, bytearray)):
        return value.decode("utf-8", "replace")
    if isinstance(value, (set, frozenset)):
        return {"__set__": [plain(inner) for inner in value]}
    if isinstance(value, dict):
        return {key_text(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    if hasattr(value, "val") and hasattr(value, "next"):
        return plain(values_of_list(value))
    if hasattr(value, "val") and hasattr(value, "left"):
        return plain(values_of_tree(value))
    if isinstance(value, complex):
        return str(value)
    # Arrays and scalars of numpy, and what behaves like them.
    if callable(getattr(value, "tolist", None)):
        return plain(value.tolist())
    if hasattr(value, "__iter__"):
        return [plain(inner) for inner in value]
    # Decimal and Fraction, as a whole number where they are one.
    if hasattr(value, "__float__"):
        whole = int(value) if value == value and abs(value) != float("inf") else None
        return whole if whole == value else float(value)
    return str(value)


def key_text(key):
    """As Python's own JSON writes keys, and those of other types as Python shows them."""
    if isinstance(key, str):
        return key
    if key is None or isinstance(key, (bool, int, float)):
        return json.dumps(plain(key))
    return str(key)


def call(path, name):
    # What the solution prints, by whatever way, goes to stderr: standard output is for the value alone.
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    arguments = json.load(sys.stdin)
    scope = load(path, "solution")
    owner = scope.get("Solution")
    function = getattr(owner(), name, None) if isinstance(owner, type) else None
    function = function or scope[name]
    arguments = nodes(arguments, scope)
    value = function(**arguments) if isinstance(arguments, dict) else function(*arguments)
    json.dump(plain(value), answer)
    answer.close()


began, path, mode, *name = sys.argv[1:]
print(began, file=sys.stderr, flush=True)
if mode == "stdin":
    load(path, "__main__")
else:
    call(path, *name)
