"""Where a test says what it expects, and what it could expect instead."""

import ast
import builtins
import random
import re

chance = random.SystemRandom()
CATCHES = re.compile(r"raises|warns|suppress|subTest|skip|fails|deprecated", re.I)
# Also a project's own: what comes second is expected as it stands.
EXACT = re.compile(r"assert(?!\w*(Not|No[A-Z]|Almost|Approx|Close|In[A-Z]?|Greater|Less))\w*(Equals?|Renders|Same|Redirects|Used)$")
PLAIN = re.compile(r"assert(List|Tuple|Sequence|Dict|MultiLine|Set)?Equals?$")
CLOSE = re.compile(r"assert_(allclose|almost_equal|array_equal|array_almost_equal|equal)$|assertAlmostEquals?$")
# What a call may be told besides its two sides, so that a change of the first digit is still beyond its tolerance.
NO_TOLERANCE = {"equal_nan", "err_msg", "msg", "verbose", "strict"}
ROUGHLY = 1e-3
TOLD = re.compile(r"assert(Raises|Warns)(Message|Regexp?)$")
RAISES = re.compile(r"^(assertRaises(Message|Regexp?)?|raises)$")
EXCEPTIONS = "ValueError TypeError KeyError IndexError AttributeError RuntimeError NotImplementedError ZeroDivisionError LookupError OSError ImportError NameError OverflowError".split()
OPPOSITE = {ast.NotEq: "==", ast.Lt: ">=", ast.GtE: "<", ast.Gt: "<=", ast.LtE: ">", ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in", ast.Eq: "!="}
SIGNS = {ast.NotEq: "!=", ast.Lt: "<", ast.GtE: ">=", ast.Gt: ">", ast.LtE: "<=", ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in", ast.Eq: "=="}
PAIRS = """Equal NotEqual, True False, Is IsNot, IsNone IsNotNone, In NotIn, IsInstance NotIsInstance, Greater LessEqual,
Less GreaterEqual, AlmostEqual NotAlmostEqual, Regex NotRegex"""
INVERSE = {}
for pair in PAIRS.split(","):
    one, other = ("assert" + name for name in pair.split())
    INVERSE[one], INVERSE[other] = other, one
WORD = re.compile(r"(?<![\\%{A-Za-z])[A-Za-z]{2,}|(?<![\\\w.])\d+(?![\w.])")


class Place:
    """A piece of a test with texts that could stand there: the first is the test's own."""

    def __init__(self, kind, span, texts, inside=False):
        self.kind, self.span, self.texts, self.inside = kind, span, texts, inside


def other_digits(text, at):
    return [text[:at] + digit + text[at + 1:] for digit in "0123456789" if digit != text[at] and not (digit == "0" and at == 0 and len(text) > 1)]


def number_texts(text, value, far):
    digits = [at for at, char in enumerate(text.lower().split("e")[0]) if char.isdigit()]
    if not re.fullmatch(r"[\d.]+([eE][-+]?\d+)?", text) or not digits:
        return []
    telling = [at for at in digits if text[at] != "0"][:1] or digits[:1]
    found = other_digits(text, chance.choice(telling if far or isinstance(value, float) else digits))
    same = []
    for text in found:
        try:
            changed = ast.literal_eval(text)
            if abs(changed - value) > (10 * ROUGHLY if far else 0):
                same.append(text)
        except (SyntaxError, ValueError):
            pass
    return same


def string_texts(source, text, value):
    """With another word of the same file in place of one, or another digit in place of one."""
    words = [found for found in WORD.finditer(text) if found.start() > 0 and not re.fullmatch(r"[rRbBuU]+", text[:found.end()])]
    chance.shuffle(words)
    for found in words[:6]:
        word = found.group()
        if word.isdigit():
            others = other_digits(word, chance.randrange(len(word)))
        else:
            cast = str.lower if word.islower() else str.upper if word.isupper() else str.capitalize if word.istitle() else str
            others = sorted({cast(known) for known in source.words if known.lower() != word.lower()})
        made = []
        for other in chance.sample(others, min(len(others), 12)):
            changed = text[:found.start()] + other + text[found.end():]
            try:
                if ast.literal_eval("(" + changed + ")") != value:
                    made.append(changed)
            except (SyntaxError, ValueError):
                pass
        if len(made) > 1:
            return made
    return []


def scalar(source, node, far):
    """The place of one value that is written out; None where there is none."""
    span, value, text = source.span(node), getattr(node, "value", None), source.text(node)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        return scalar(source, node.operand, far)
    if not isinstance(node, ast.Constant) or value is None or value is Ellipsis:
        return None
    if isinstance(value, bool):
        return Place("truth", span, [text, str(not value)])
    if isinstance(value, (int, float)):
        texts = number_texts(text, value, far)
        return Place("number", span, [text, *texts]) if texts else None
    if isinstance(value, (str, bytes)) and not far:
        texts = string_texts(source, text, value)
        return Place("text", span, [text, *texts]) if texts else None
    return None


def within(source, node, far):
    """The places of all values that are written out in a literal."""
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return [place for part in node.elts for place in within(source, part, far)]
    if isinstance(node, ast.Dict):
        return [place for part in [*node.keys, *node.values] if part is not None for place in within(source, part, far)]
    if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in ("array", "dedent") and node.args:
        return within(source, node.args[0], far)
    place = scalar(source, node, far)
    return [place] if place else []


def of_expression(source, node):
    """Numbers on which the value of an expression depends: operands, and what is given to a class."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)):
        sides = [node.left, node.right]
        if not isinstance(node.op, (ast.Add, ast.Sub)) and any(isinstance(side, ast.Constant) and side.value in (0, 1) for side in sides):
            return []
        if isinstance(node.op, ast.Pow) and isinstance(node.left, ast.Constant):
            sides = [node.right]
        return [place for side in sides for place in of_expression(source, side)]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id[:1].isupper() and not node.keywords:
        return [place for part in node.args for place in (of_expression(source, part) or (within(source, part, False) if isinstance(part, (ast.List, ast.Tuple)) else []))]
    if isinstance(node, ast.Constant) and isinstance(node.value, int) and not isinstance(node.value, bool):
        place = scalar(source, node, False)
        return [place] if place else []
    return []


def reached(source, body):
    """Statements that always run."""
    for statement in body:
        yield statement
        if isinstance(statement, (ast.With, ast.AsyncWith)):
            if not any(CATCHES.search(source.text(item.context_expr)) for item in statement.items):
                yield from reached(source, statement.body)
        if isinstance(statement, ast.For) and isinstance(statement.iter, (ast.List, ast.Tuple)) and statement.iter.elts:
            if not any(isinstance(part, (ast.Break, ast.Continue)) for inner in statement.body for part in ast.walk(inner)):
                yield from reached(source, statement.body)


def sides_of(statement):
    """What a statement compares, as [(node, whether only roughly)]."""
    if isinstance(statement, ast.Assert):
        tests = statement.test.values if isinstance(statement.test, ast.BoolOp) and isinstance(statement.test.op, ast.And) else [statement.test]
        equal = [test for test in tests if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], (ast.Eq, ast.Is))]
        return [(side, False) for test in equal for side in (test.comparators[0], test.left)]
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or any(isinstance(given, ast.Starred) for given in call.args):
        return []
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if len(call.args) >= 2 and (EXACT.match(name) or name == "assertIs"):
        return [(call.args[1], False)] + ([(call.args[0], False)] if PLAIN.match(name) else [])
    if len(call.args) == 2 and CLOSE.match(name) and all(is_tight(given) for given in call.keywords):
        return [(call.args[1], True), (call.args[0], True)]
    return []


def is_tight(given):
    if given.arg == "rtol":
        return isinstance(given.value, ast.Constant) and isinstance(given.value.value, float) and given.value.value <= ROUGHLY
    return given.arg in NO_TOLERANCE


def expected_errors(source, statement):
    """Places of the kinds and messages of errors that a statement expects."""
    calls = [item.context_expr for item in statement.items] if isinstance(statement, (ast.With, ast.AsyncWith)) else [getattr(statement, "value", None)] if isinstance(statement, ast.Expr) else []
    places, named = [], []
    for call in calls:
        if not isinstance(call, ast.Call):
            continue
        name = getattr(call.func, "attr", getattr(call.func, "id", ""))
        if RAISES.match(name) and call.args and isinstance(call.args[0], ast.Name) and call.args[0].id in EXCEPTIONS:
            known = getattr(builtins, call.args[0].id)
            others = [other for other in EXCEPTIONS if not issubclass(getattr(builtins, other), known) and not issubclass(known, getattr(builtins, other))]
            places.append(Place("error", source.span(call.args[0]), [known.__name__, *chance.sample(others, len(others))]))
        told = [given.value for given in call.keywords if given.arg == "match"] if name == "raises" else call.args[1:2] if TOLD.match(name) else []
        named += told
    return places, [(node, False) for node in named]


def opposites(source, statement):
    """That a statement's claim holds, or that it does not."""
    if isinstance(statement, ast.Assert):
        test = statement.test
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            between = (source.span(test.left)[1], source.span(test.comparators[0])[0])
            gap = source.data[between[0]:between[1]].decode()
            sign = SIGNS[type(test.ops[0])]
            if gap.split() == sign.split():
                return [Place("claim", between, [gap, gap.replace(gap.strip(), OPPOSITE[type(test.ops[0])])])]
        inner = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else test
        whole = "bool(" + source.text(inner) + ") is "
        texts = [whole + "True", whole + "False"]
        return [Place("claim", source.span(test), texts if inner is test else texts[::-1])]
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in INVERSE:
        end, name = source.span(call.func)[1], call.func.attr
        return [Place("claim", (end - len(name), end), [name, INVERSE[name]])]
    return []


def of_parameter(source, node, name, far):
    """Of one of the values that a test is run with."""
    for decorator in node.decorator_list:
        if not isinstance(decorator, ast.Call) or getattr(decorator.func, "attr", "") != "parametrize" or len(decorator.args) < 2:
            continue
        given, values = decorator.args[:2]
        try:
            names = ast.literal_eval(given)
        except ValueError:
            continue
        names = [part.strip() for part in names.split(",")] if isinstance(names, str) else list(names)
        if name not in names or not isinstance(values, (ast.List, ast.Tuple)):
            continue
        places = []
        for entry in values.elts:
            if len(names) > 1 and isinstance(entry, (ast.Tuple, ast.List)) and len(entry.elts) == len(names):
                places += within(source, entry.elts[names.index(name)], far)
            elif len(names) == 1:
                places += within(source, entry, far)
        return [Place("parameter", place.span, place.texts, True) for place in places if place.kind != "truth"]
    return []


def places_of(source, node):
    """Places of a test, strong ones and weak ones: those have no more than two texts, of which one is likelier. At most one
    of each claim, because two changes of one may make up for each other: both sides, 1 + 2, a set, a double negation."""
    strong, weak = [], []
    statements = list(reached(source, node.body))
    loads = {}
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
            loads[part.id] = loads.get(part.id, 0) + 1
    stores = {}
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            stores[part.id] = stores.get(part.id, 0) + 1
    assigned = {
        statement.targets[0].id: statement.value
        for statement in statements
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name)
    }
    arguments = {argument.arg for argument in node.args.args}
    for statement in statements:
        errors, told = expected_errors(source, statement)
        strong_here, weak_here = list(errors), opposites(source, statement)
        for side, far in sides_of(statement) + told:
            if isinstance(side, ast.Name) and loads.get(side.id) == 1:
                if stores.get(side.id) == 1 and side.id in assigned:
                    found = within(source, assigned[side.id], far)
                elif side.id in arguments and not stores.get(side.id):
                    found = of_parameter(source, node, side.id, far)
                else:
                    found = []
            else:
                found = within(source, side, far) or ([] if far else of_expression(source, side))
            for place in found:
                (weak_here if len(place.texts) == 2 else strong_here).append(place)
        strong += [chance.choice(strong_here)] if strong_here else []
        weak += [chance.choice(weak_here)] if weak_here else []
    return strong, weak
