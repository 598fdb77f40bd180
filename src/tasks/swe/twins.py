"""Puts changed copies of a row's tests beside them: each asks for something else in one to three places, so that of a test and
its copies exactly one can hold. Names, order and places of the changes say nothing about which one that is: names are
dealt out anew among them where that is safe. Follows `twin-places.py` in one program. Reads a plan as JSON from standard
input, before anything of the agent's is there, and prints what it made."""

import itertools
import json
import os
import sys

LEAVES = re.compile(r"xfail|expectedFailure|flaky|retry|repeat")
BY_NAME = re.compile(r"_testMethodName|\.id\(\)|request\.(node|function)|PYTEST_CURRENT|currentframe|__qualname__|\.__name__")


class Source:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        self.tree = ast.parse(self.data)
        self.known = self.data.decode()
        self.starts = [0]
        for line in self.data.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.tests = {}
        self.bases = {getattr(base, "id", getattr(base, "attr", "")) for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef) for base in node.bases}
        self.words = sorted({word for node in ast.walk(self.tree) if isinstance(node, ast.Constant) and isinstance(node.value, str) for word in re.findall(r"[A-Za-z]{2,}", node.value)} | set("one two name value left right".split()))
        for owner in [self.tree] + [node for node in self.tree.body if isinstance(node, ast.ClassDef)]:
            for node in owner.body:
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    key = (getattr(owner, "name", None), node.name)
                    # Of two with the same name only the last is run.
                    self.tests[key] = None if key in self.tests else node

    def at(self, line, column):
        return self.starts[line - 1] + column

    def span(self, node):
        return self.at(node.lineno, node.col_offset), self.at(node.end_lineno, node.end_col_offset)

    def text(self, node):
        start, end = self.span(node)
        return self.data[start:end].decode()


def other_name(name, texts):
    """One that could be any test's, of the words of those around it, and that stands nowhere."""
    words = sorted({word for text in texts for known in re.findall(r"def test_(\w+)", text) for word in known.split("_") if word and not word.isdigit()}) or ["case"]
    parts = [part for part in name.split("_")[1:] if part]
    for _ in range(200):
        made = list(parts) or [chance.choice(words)]
        place = chance.randrange(len(made))
        made[place:place + chance.choice([0, 1])] = [chance.choice(words)]
        if chance.random() < 0.3:
            made.append(chance.choice(words))
        found = "_".join(["test", *made])
        if not any(re.search(r"\b" + found + r"\b", text) for text in texts):
            return found
    return next(made for made in (name + "_" + str(count) for count in range(2, 10000)) if not any(made in text for text in texts))


def returns(body):
    for statement in body:
        if isinstance(statement, (ast.Return, ast.Yield)) or (isinstance(statement, ast.Expr) and isinstance(statement.value, (ast.Yield, ast.YieldFrom))):
            return True
        if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            inner = [part for part in ast.iter_child_nodes(statement) if isinstance(part, (ast.stmt, ast.ExceptHandler))]
            if returns(inner):
                return True
    return False


def chosen_places(strong, weak, most):
    """Places whose combinations are at most so many, with as many texts of each, and of different kinds where there are some."""
    chance.shuffle(strong)
    chance.shuffle(weak)
    seen, picked, combinations = set(), [], 1
    for again in (False, True):
        for place in strong:
            if (place.kind in seen) != again or any(place.span[0] < other.span[1] and other.span[0] < place.span[1] for other, _ in picked):
                continue
            left = most // combinations
            count = min(len(place.texts), left if len(strong) == 1 else 3 if left >= 6 else 2 if left >= 4 else left)
            if count >= 2:
                picked.append((place, [place.texts[0], *chance.sample(place.texts[1:], count - 1)]))
                combinations *= count
                seen.add(place.kind)
    if not picked:
        for place in weak[:2]:
            if combinations * 2 <= most and not any(place.span[0] < other.span[1] and other.span[0] < place.span[1] for other, _ in picked):
                picked.append((place, list(place.texts)))
                combinations *= 2
    return picked


def may_rename(source, key, texts):
    owner, name = key
    if BY_NAME.search(source.known) or len(re.findall(r"\b" + name + r"\b", "\n".join(texts))) != 1:
        return False
    return owner is None or (owner not in source.bases and not any(re.search(r"\b" + owner + r"\b", text) for text in texts if text is not source.known))


def twins_of(source, key, plan, most, texts):
    node = source.tests.get(key)
    if node is None or returns(node.body) or (ast.get_docstring(node) and not plan["docstrings"]):
        return None
    if any(LEAVES.search(source.text(decorator)) for decorator in node.decorator_list):
        return None
    first = min([node.lineno] + [decorator.lineno for decorator in node.decorator_list])
    start, end = source.starts[first - 1], source.starts[node.end_lineno]
    header = re.compile(rb"def\s+" + node.name.encode() + rb"\b").search(source.data, source.at(node.lineno, node.col_offset))
    strong, weak = places_of(source, node)
    fits = lambda place: start <= place.span[0] < place.span[1] <= end
    picked = chosen_places([place for place in strong if fits(place)], [place for place in weak if fits(place)], most)
    if header is None or not picked:
        return None
    bodies = []
    for texts_chosen in itertools.product(*(texts for _, texts in picked)):
        changes = [(place.span, text.encode()) for (place, _), text in zip(picked, texts_chosen)]
        own = all(text == place.texts[0] for (place, _), text in zip(picked, texts_chosen))
        bodies.append((own, changes))
    names = [node.name]
    while len(names) < len(bodies):
        names.append(other_name(node.name, [*texts, *(" " + made + " " for made in names)]))
    renamed = may_rename(source, key, texts)
    rest = names[1:] if not renamed else names
    chance.shuffle(rest)
    named = [(node.name if own and not renamed else rest.pop(), own, changes) for own, changes in bodies]
    chance.shuffle(named)
    parts = []
    for name, own, changes in named:
        edits = sorted([*changes, ((header.end() - len(node.name), header.end()), name.encode())], reverse=True)
        data = source.data
        for (begin, finish), text in edits:
            data = data[:begin] + text + data[finish:]
        parts.append(data[start:len(data) - (len(source.data) - end)].rstrip(b"\r\n") + b"\n")
    gap = b"\n" * (1 if key[0] else 2)
    return {
        "span": (start, end), "text": gap.join(parts),
        "original": next(name for name, own, _ in named if own), "copies": [name for name, own, _ in named if not own],
        "kinds": sorted({place.kind for place, _ in picked}), "renamed": renamed,
        "inside": any(place.inside for place, _ in picked),
    }


def main():
    plan = json.load(sys.stdin)
    sources, made, tried = {}, [], set()

    def source_of(path):
        if path not in sources:
            sources[path] = Source(os.path.join(plan["folder"], path))
        return sources[path]

    others = []
    for path in plan["files"]:
        folder = os.path.dirname(os.path.join(plan["folder"], path))
        for name in sorted(os.listdir(folder))[:400] if os.path.isdir(folder) else []:
            full = os.path.join(folder, name)
            if name.endswith(".py") and os.path.isfile(full) and os.path.relpath(full, plan["folder"]) not in plan["files"] and full not in tried:
                tried.add(full)
                with open(full, "rb") as file:
                    others.append(file.read(1 << 20).decode("utf-8", "replace"))
    for path in plan["files"]:
        try:
            source_of(path)
        except (OSError, SyntaxError, ValueError):
            pass
    for share in plan["shares"]:
        left, tests = share["copies"], list(share["tests"])
        chance.shuffle(tests)
        done = 0
        for test in tests:
            if done >= share["groups"] or left <= 0:
                break
            places = [test["file"]] if test.get("file") else plan["files"]
            for path in places:
                key = (test.get("class"), test["name"])
                try:
                    source = source_of(path)
                    if (path, key) in tried or key not in source.tests:
                        continue
                    tried.add((path, key))
                    texts = [known.known for known in sources.values()] + others
                    most = 1 + max(1, left // max(1, min(share["groups"], len(tests)) - done))
                    found = twins_of(source, key, plan, most, texts + [" ".join(["", *group["copies"], group["original"], ""]) for _, _, group in made])
                except (OSError, SyntaxError, ValueError, KeyError, RecursionError):
                    continue
                if found:
                    made.append((path, test["test"], found))
                    left -= len(found["copies"])
                    done += 1
                break
    for path in {path for path, _, _ in made}:
        data = sources[path].data
        if not data.endswith(b"\n"):
            data += b"\n"
        for _, _, group in sorted((one for one in made if one[0] == path), key=lambda one: one[2]["span"], reverse=True):
            start, end = group["span"]
            data = data[:start] + group["text"] + data[end:]
        ast.parse(data)
        with open(os.path.join(plan["folder"], path), "wb") as file:
            file.write(data)
    print(json.dumps([{"test": test, **{name: group[name] for name in ("original", "copies", "kinds", "renamed", "inside")}} for _, test, group in made]))


if sys.version_info < (3, 8):
    sys.exit(8)
main()
