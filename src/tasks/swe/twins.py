"""Puts changed copies of a row's tests beside them: each asserts last what can't hold where its model does. Which of two
that look alike is the copy can't be told without the right answer. Reads a plan as JSON from standard input, before
anything of the agent's is there, and prints which copies it made."""

import ast
import json
import os
import random
import re
import sys

if sys.version_info < (3, 8):
    sys.exit(8)

NO_FRIENDS = re.compile(r"raises|warns|suppress|subTest|skip", re.I)
OPPOSITE = {
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Lt: ("<", ">="), ast.GtE: (">=", "<"),
    ast.Gt: (">", "<="), ast.LtE: ("<=", ">"), ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"),
}
PAIRS = """Equal NotEqual, True False, Is IsNot, IsNone IsNotNone, In NotIn, IsInstance NotIsInstance, Greater LessEqual,
Less GreaterEqual, AlmostEqual NotAlmostEqual, Regex NotRegex"""
INVERSE = {}
for pair in PAIRS.split(","):
    one, other = ("assert" + name for name in pair.split())
    INVERSE[one], INVERSE[other] = other, one
EXACT = re.compile(r"assert(List|Tuple|Sequence|Dict|MultiLine)?Equal$")
CLOSE = re.compile(r"assert_(allclose|almost_equal|array_equal|array_almost_equal|equal)$")
chance = random.SystemRandom()


class Source:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        self.tree = ast.parse(self.data)
        self.starts = [0]
        for line in self.data.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.tests = {}
        self.names = set()
        for owner in [self.tree] + [node for node in self.tree.body if isinstance(node, ast.ClassDef)]:
            for node in owner.body:
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    self.tests[(getattr(owner, "name", None), node.name)] = node
                    self.names.add(node.name)

    def at(self, line, column):
        return self.starts[line - 1] + column

    def span(self, node):
        return self.at(node.lineno, node.col_offset), self.at(node.end_lineno, node.end_col_offset)

    def text(self, node):
        start, end = self.span(node)
        return self.data[start:end].decode()


def other_number(value, far):
    step = chance.randint(1, 9) if far else chance.choice([1, 1, 2, 3, 10])
    return value + step + (abs(value) if far else 0)


def other_literal(source, node, far):
    """(start, end, text) of a change after which the literal is another one; None where it is none."""
    if isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, (bool, type(None), complex)) or value is Ellipsis:
            return None
        if isinstance(value, (int, float)):
            if isinstance(value, float) and not abs(value) < 1e15:
                return None
            return (*source.span(node), repr(other_number(value, far)))
        text = source.text(node)
        letters = [at for at, char in enumerate(text) if at > 0 and char.isascii() and char.isalnum() and text[at - 1] != "\\"]
        if "\\" in text or text[0] not in "'\"" or not letters:
            return None
        at = chance.choice(letters)
        char = chance.choice([char for char in ("0123456789" if text[at].isdigit() else "abcdeglmnoprstuw") if char != text[at]])
        return (*source.span(node), text[:at] + char + text[at + 1:])
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = getattr(node.operand, "value", None)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e15:
            return (*source.span(node), repr(other_number(-value, far)))
        return None
    parts = node.elts if isinstance(node, (ast.List, ast.Tuple)) else node.values if isinstance(node, ast.Dict) else []
    for part in chance.sample(parts, len(parts)):
        change = other_literal(source, part, far)
        if change:
            return change
    return None


def negated(source, test):
    start, end = source.span(test)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return (start, end, source.text(test.operand))
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        left, right = test.left, test.comparators[0]
        if isinstance(test.ops[0], ast.Eq):
            change = other_literal(source, right, False) or other_literal(source, left, False)
            if change:
                return change
        sign, opposite = OPPOSITE[type(test.ops[0])]
        between = (source.span(left)[1], source.span(right)[0])
        gap = source.data[between[0]:between[1]].decode()
        if gap.split() == sign.split():
            return (*between, gap.replace(gap.strip(), opposite))
    return (start, end, "not (" + source.text(test) + ")")


def change_of(source, statement):
    """What makes a statement fail that holds."""
    if isinstance(statement, ast.Assert):
        return negated(source, statement.test)
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or any(isinstance(given, ast.Starred) for given in call.args):
        return None
    if isinstance(call.func, ast.Attribute) and getattr(call.func.value, "id", None) == "self":
        name = call.func.attr
        if EXACT.match(name) and len(call.args) >= 2:
            change = other_literal(source, call.args[1], False) or other_literal(source, call.args[0], False)
            if change:
                return change
        end = source.span(call.func)[1]
        return (end - len(name), end, INVERSE[name]) if name in INVERSE else None
    name = getattr(call.func, "id", getattr(call.func, "attr", ""))
    if CLOSE.match(name) and len(call.args) >= 2:
        return other_literal(source, call.args[1], True)
    return None


def last_change(source, body):
    """Of the last statement that is always reached; not within what expects an exception."""
    for statement in reversed(body):
        if isinstance(statement, (ast.With, ast.AsyncWith)):
            if not any(NO_FRIENDS.search(source.text(item.context_expr)) for item in statement.items):
                change = last_change(source, statement.body)
                if change:
                    return change
        change = change_of(source, statement)
        if change:
            return change
    return None


def other_name(name, names):
    """One that could be any test's, of the words of those around it."""
    words = sorted({word for known in names for word in known.split("_")[1:] if word})
    for _ in range(50):
        parts = name.split("_")
        place = chance.randrange(1, len(parts)) if len(parts) > 1 else 1
        word = chance.choice(words) if words else "case"
        made = parts[:place] + ([word] if chance.random() < 0.5 else [word] + parts[place:][:1]) + parts[place + 1:]
        found = "_".join(part for part in made if part)
        if found not in names and found.startswith("test") and found != name:
            return found
    return next(made for made in (name + "_" + str(count) for count in range(2, 1000)) if made not in names)


def leaves_early(node):
    inner = [part for statement in node.body for part in ast.walk(statement)]
    return any(isinstance(part, ast.Return) or (isinstance(part, ast.Attribute) and NO_FRIENDS.match(part.attr) and part.attr.startswith("skip")) for part in inner)


def twin_of(source, key, docstrings):
    """(place, text, name), or None where there is none to be had."""
    node = source.tests[key]
    if leaves_early(node) or (ast.get_docstring(node) and not docstrings):
        return None
    change = last_change(source, node.body)
    if change is None:
        return None
    first = min([node.lineno] + [decorator.lineno for decorator in node.decorator_list])
    start, end = source.starts[first - 1], source.starts[node.end_lineno]
    name = other_name(node.name, source.names)
    header = re.compile(rb"def\s+" + node.name.encode() + rb"\b").search(source.data, source.at(node.lineno, node.col_offset))
    if header is None or not start <= header.start() < change[0] < change[1] <= end:
        return None
    text = (
        source.data[start:header.end() - len(node.name)] + name.encode() + source.data[header.end():change[0]]
        + change[2].encode() + source.data[change[1]:end]
    )
    return start, end, text.rstrip(b"\r\n") + b"\n", name


def main():
    plan = json.load(sys.stdin)
    fixed = random.Random(plan["seed"])
    sources, made, inserted = {}, [], {}
    for index, test in fixed.sample(list(enumerate(plan["tests"])), len(plan["tests"])):
        if len(made) >= plan["most"]:
            break
        for path in [test["file"]] if test.get("file") else plan["files"]:
            try:
                if path not in sources:
                    sources[path] = Source(os.path.join(plan["folder"], path))
                source = sources[path]
                twin = twin_of(source, (test.get("class"), test["name"]), plan["docstrings"])
            except (OSError, SyntaxError, ValueError, KeyError):
                continue
            if twin is None:
                continue
            start, end, text, name = twin
            gap = b"\n" * (1 if test.get("class") else 2)
            before = fixed.random() < 0.5
            inserted.setdefault(path, []).append((start, text + gap) if before else (end, gap + text))
            source.names.add(name)
            made.append({"test": index, "name": name})
            break
    for path, parts in inserted.items():
        data = sources[path].data
        if not data.endswith(b"\n"):
            data += b"\n"
        for place, text in sorted(parts, reverse=True):
            data = data[:place] + text + data[place:]
        ast.parse(data)
        with open(os.path.join(plan["folder"], path), "wb") as file:
            file.write(data)
    print(json.dumps(made))


main()
