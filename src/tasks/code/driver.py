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


class ListNode:
    def __init__(self, val=0, next=None):
        self.val, self.next = val, next


class TreeNode:
    def __init__(self, val=0, left=None, right=None):
        self.val, self.left, self.right = val, left, right
"""


def load(path, name):
    with open(path, encoding="utf-8") as file:
        code = compile(file.read(), "solution.py", "exec")
    scope = {"__name__": name, "__builtins__": __builtins__}
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
    """As JSON can say it."""
    if hasattr(value, "val") and hasattr(value, "next"):
        return plain(values_of_list(value))
    if hasattr(value, "val") and hasattr(value, "left"):
        return plain(values_of_tree(value))
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
    function = function or scope[name]
    arguments = nodes(arguments, scope)
    value = function(**arguments) if isinstance(arguments, dict) else function(*arguments)
    json.dump(plain(value), answer)
    answer.flush()


mode, path = sys.argv[1:3]
if mode == "check":
    print("ready")
elif mode == "stdin":
    load(path, "__main__")
else:
    call(path, sys.argv[3])
