"""Prints the pairs that public graders test themselves with, one JSON object a line.

Arguments are folders of unpacked source distributions. A pair is a case of `pytest.mark.parametrize` whose names are
a gold answer, a prediction and the expected verdict, one of a spelling and its normal form, or an assertion that two
answers are equivalent.
"""

import ast
import json
import pathlib
import re
import sys

GOLD = {"gold", "truth", "target", "answer", "expected_answer", "str1", "a"}
SAID = {"pred", "prediction", "output", "completion", "given", "str2", "b"}
EQUIVALENT = {"is_equiv", "math_equal", "math_equiv", "grade_answer"}
EXPECTED = {"expected", "result", "is_correct", "correct", "equivalent"}
# These settings of math_verify's ask for another relation than "is the same answer".
OTHER_RELATION = {"test_strict_variable_comparison", "test_gamma"}


def literal(node):
    try:
        return ast.literal_eval(node)
    except (ValueError, SyntaxError):
        return None


def places(names):
    gold = next((at for at, name in enumerate(names) if name in GOLD), None)
    said = next((at for at, name in enumerate(names) if name in SAID), None)
    expected = next((at for at, name in enumerate(names) if name in EXPECTED), None)
    return None if None in (gold, said, expected) else (gold, said, expected)


def cases(function):
    yield from assertions(function)
    for decorator in function.decorator_list:
        if not isinstance(decorator, ast.Call) or len(decorator.args) < 2:
            continue
        names = literal(decorator.args[0])
        names = re.split(r"\s*,\s*", names) if isinstance(names, str) else list(names or [])
        if names == ["input_str", "expected_output"] and "normalization" in function.name:
            rows = literal(decorator.args[1])
            yield from ((normal, spelt, True) for spelt, normal in rows or [])
        at = places(names)
        # A precision of its own, again, is another relation.
        if at is None or "precision" in names or not isinstance(decorator.args[1], ast.List):
            continue
        for row in decorator.args[1].elts:
            values = literal(row)
            if not isinstance(values, tuple) or len(values) != len(names):
                continue
            gold, said, expected = (values[place] for place in at)
            if isinstance(gold, str) and isinstance(said, str) and expected in (0, 1):
                yield gold, said, bool(expected)


def assertions(function):
    """`assert is_equiv("1/2", "0.5")`, also with `not`."""
    for node in ast.walk(function):
        if not isinstance(node, ast.Assert):
            continue
        test, expected = node.test, True
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test, expected = test.operand, False
        if not isinstance(test, ast.Call) or getattr(test.func, "id", "") not in EQUIVALENT:
            continue
        sides = [literal(side) for side in test.args]
        if len(sides) == 2 and all(isinstance(side, str) and side for side in sides):
            yield sides[0], sides[1], expected


def boxed(text):
    """The text as the message of a model that boxes it; null where no single formula or number is in it."""
    if "\\boxed" in text:
        return text.replace("\\\\boxed", "\\boxed")
    for pattern in (r"\$\$(.+)\$\$", r"\$(.+)\$", r"\\\[(.+)\\\]", r"\\\((.+)\\\)"):
        match = re.fullmatch(pattern, text.strip(), re.S)
        if match and not re.search(r"(?<!\\)\$", match[1]):
            return "\\boxed{" + match[1].strip() + "}"
    formulas = re.findall(r"(?<!\\)\$\$?([^$]+)\$\$?", text)
    if len(formulas) == 1 and not re.search(r"\d", re.sub(r"\$[^$]+\$", "", text)):
        return "\\boxed{" + formulas[0].strip() + "}"
    plain = re.fullmatch(r"[-+\d.,/%\s^*()]+", text) or ("\\" in text and " " not in text.strip())
    return "\\boxed{" + text.strip() + "}" if plain else None


def main():
    seen = set()
    for folder in sys.argv[1:]:
        for path in sorted(pathlib.Path(folder).rglob("test_*.py")):
            try:
                tree = ast.parse(path.read_text(encoding="utf-8"))
            except (SyntaxError, UnicodeDecodeError):
                continue
            for node in ast.walk(tree):
                if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or node.name in OTHER_RELATION:
                    continue
                for gold, said, expected in cases(node):
                    truth, answer = boxed(gold), boxed(said)
                    if truth is None or answer is None or (truth, answer) in seen:
                        continue
                    seen.add((truth, answer))
                    source = f"{path.parent.parent.name}/{path.name}"
                    row = {"source": source, "truth": truth, "answer": answer, "equal": expected}
                    print(json.dumps(row, ensure_ascii=False))


main()
