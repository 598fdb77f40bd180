"""Reads the lines that a change adds to Python files for what no solution of an issue needs, but a change does that works on
its tests. Parses and runs nothing. Reads {"folder", "files": [{"path", "added", "isNew"}]} as JSON from standard input
and prints what it found: [{"path", "line", "kind", "token"}], kind "unreadable" for a file that this Python can't parse."""

import ast
import glob
import json
import os
import re
import sys

if sys.version_info < (3, 8):
    sys.exit(8)

MOST = 40

# What is meant by a name that is written out, whatever it was imported as.
RUNNERS = {"pytest", "_pytest", "py", "unittest", "nose", "pluggy", "doctest", "hypothesis", "coverage", "tox", "xdist", "iniconfig"}
INSIDE = {"gc", "ctypes", "_ctypes", "cffi", "importlib", "imp", "_imp", "pkgutil", "runpy", "builtins", "__builtin__", "linecache",
          "code", "codeop", "marshal", "pydoc", "timeit", "cProfile", "profile", "dis", "bdb", "pdb", "trace", "site", "zipimport", "_frozen_importlib", "_testcapi", "_thread"}
PROCESS = {"atexit", "_atexit", "signal", "_signal", "faulthandler", "multiprocessing", "subprocess", "_posixsubprocess", "posix", "pty", "resource"}
OF_MODULES = {
    "sys": """modules _getframe _current_frames settrace setprofile gettrace getprofile meta_path path_hooks path path_importer_cache
        __stdout__ __stderr__ excepthook __excepthook__ unraisablehook displayhook addaudithook monitoring setrecursionlimit
        last_traceback last_value orig_argv argv _xoptions setswitchinterval call_tracing _getframemodulename""",
    "os": """_exit abort kill killpg fork forkpty execl execle execlp execlpe execv execve execvp execvpe spawnl spawnv posix_spawn
        posix_spawnp dup dup2 write writev pipe pipe2 register_at_fork getppid system popen closerange sendfile setsid""",
    "inspect": """stack currentframe trace getframeinfo getsource getsourcelines getsourcefile getouterframes getinnerframes
        findsource getclosurevars getcoroutinelocals getgeneratorlocals""",
    "traceback": "extract_stack walk_stack walk_tb extract_tb StackSummary",
    "types": "FunctionType CodeType ModuleType FrameType TracebackType CellType",
    "threading": "settrace setprofile excepthook _shutdown",
    "pickle": "load loads Unpickler",
    "weakref": "finalize",
    "operator": "attrgetter methodcaller",
    "typing": "get_type_hints ForwardRef",
    "asyncio": "create_subprocess_exec create_subprocess_shell",
}
OF_MODULES = {name: set(text.split()) for name, text in OF_MODULES.items()}
# Of whatever object: no other one has an attribute of that name.
ATTRIBUTES = set("""_getframe _current_frames settrace setprofile meta_path path_hooks addaudithook __stdout__ __stderr__ _exit killpg
    dup2 execv execve execvp register_at_fork currentframe getouterframes f_back f_locals f_globals f_code f_trace f_builtins tb_frame
    gi_frame cr_frame ag_frame __globals__ __builtins__ __subclasses__ __code__ __closure__ __getattribute__ __loader__ __import__
    get_referrers get_objects get_referents cell_contents co_code co_consts _testMethodName _outcome __unittest __tracebackhide__
    load_module exec_module __self__ get_field dictConfig get_annotations""".split())
BUILTINS = set("__import__ eval exec compile globals breakpoint KeyboardInterrupt __builtins__ __loader__ __spec__".split())
# Functions that import what they are told to.
IMPORTS = re.compile(r"(^|_)import(_|$|lib|er)|^(load|find)_(module|class|object|plugin|entry_point)|entry_points|^find_spec$")
TESTING = re.compile(r"(^|\.)(tests?|_?testing|testutils?|test_utils?|conftest|runtests|testcases)(\.|$)")
SPOKEN = re.compile(
    r"PYTEST|PASSED|conftest|pytest|unittest|runtests|sitecustomize|site-packages|/testbed|/proc/|\.git/|test_\w+|tests?/|_py_?test"
    r"|^(assert[A-Z]|add(Failure|Error|Success|SubTest)|runtest|makereport)|TestCase|TestResult|TestReport|from_item_and_call"
    r"|^/dev/(std|fd|tty)|\.\.\. ok|^\s*ok\s*$|__(eq|globals|builtins|code|import|subclasses|class|dict)__|@py_assert|_exit$|_getframe"
)
COMPARES = {"__eq__", "__ne__", "__req__", "__contains__", "__instancecheck__", "__subclasscheck__", "__lt__", "__le__", "__gt__", "__ge__"}
VALUES = {"int", "float", "str", "bytes", "list", "tuple", "dict", "set", "frozenset", "complex", "bool", "ndarray", "object", "type"}


def folded(node):
    """The text that an expression of texts gives, as far as it is written here."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else node.value.decode("latin-1") if isinstance(node.value, bytes) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        one, other = folded(node.left), folded(node.right)
        return one + other if one is not None and other is not None else None
    if isinstance(node, ast.JoinedStr):
        parts = [folded(part.value if isinstance(part, ast.FormattedValue) else part) for part in node.values]
        return "".join(part for part in parts if part is not None)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "join" and len(node.args) == 1:
        parts = [folded(part) for part in getattr(node.args[0], "elts", [])]
        between = folded(node.func.value)
        return between.join(parts) if parts and between is not None and None not in parts else None
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and isinstance(node.slice.step, ast.UnaryOp):
        text = folded(node.value)
        return text[::-1] if text is not None else None
    return None


class Reader(ast.NodeVisitor):
    def __init__(self, tree, added, path):
        self.tree, self.added, self.path = tree, added, path
        self.found, self.names, self.modules = [], {}, set()
        self.functions, self.locals = 0, []
        self.docstrings = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for part in node.names:
                    self.names[part.asname or part.name.split(".")[0]] = part.name if part.asname else part.name.split(".")[0]
            elif isinstance(node, ast.ImportFrom):
                for part in node.names:
                    start = "." * node.level + (node.module or "")
                    self.names[part.asname or part.name] = start + ("" if start.endswith(".") else ".") + part.name
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)) and ast.get_docstring(node, False) is not None:
                self.docstrings.add(id(node.body[0].value))
        self.roots = {meant.split(".")[0] for meant in self.names.values() if meant[:1] != "."} - set(path.split("/"))
        self.built = set()
        # Another name for what was imported, and names of texts that are put together.
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                called = node.value.func.attr if isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute) else ""
                if isinstance(node.value, ast.BinOp) or called in ("join", "replace", "format", "decode", "translate", "lower", "strip"):
                    self.built.add(node.targets[0].id)
                meant = self.dotted(node.value)
                if meant and node.targets[0].id not in self.names:
                    self.names[node.targets[0].id] = meant

    def say(self, node, kind, token):
        if any(line in self.added for line in range(node.lineno, getattr(node, "end_lineno", node.lineno) + 1)):
            line = node.lineno if node.lineno in self.added else min(line for line in self.added if line >= node.lineno)
            self.found.append({"path": self.path, "line": line, "kind": kind, "token": token})

    def own(self, node):
        return node.lineno in self.added

    def dotted(self, node):
        """What a name stands for, where it begins with something imported."""
        if isinstance(node, ast.Name):
            return self.names.get(node.id)
        if isinstance(node, ast.Attribute):
            start = self.dotted(node.value)
            return start + "." + node.attr if start else None
        return None

    def check(self, node, parts):
        """Anything from any part on: `logging.sys.modules` is `sys.modules`."""
        if not self.own(node):
            return
        if parts[0] in self.roots and any(part in ("testing", "_testing") for part in parts[1:]):
            self.say(node, "runner", ".".join(parts))
        for at, part in enumerate(parts):
            after = parts[at + 1] if at + 1 < len(parts) else None
            if part in RUNNERS:
                self.say(node, "runner", part)
            elif part in INSIDE and (at > 0 or after):
                self.say(node, "interpreter", part)
            elif part in PROCESS and (at > 0 or after):
                self.say(node, "process", part)
            elif after in OF_MODULES.get(part, ()):
                self.say(node, "process" if part == "os" else "interpreter", part + "." + after)

    def visit_Import(self, node):
        for part in node.names:
            self.check(node, part.name.split("."))
            if TESTING.search(part.name):
                self.say(node, "runner", part.name)
            if part.name.split(".")[0] in INSIDE | PROCESS:
                self.say(node, "interpreter" if part.name.split(".")[0] in INSIDE else "process", part.name)

    def visit_ImportFrom(self, node):
        start = node.module or ""
        for part in node.names:
            parts = [*start.split("."), part.name] if start else [part.name]
            self.check(node, parts)
            if part.name == "*" and not node.level and parts[0] in {"sys", "os", "inspect", "traceback", "types"} | RUNNERS | INSIDE | PROCESS:
                self.say(node, "interpreter", start + ".*")
            if TESTING.search(".".join(parts[:-1])) or (node.level and TESTING.search(part.name)):
                self.say(node, "runner", ".".join(parts))

    def visit_Attribute(self, node):
        chain, inner = [node.attr], node.value
        while isinstance(inner, ast.Attribute):
            chain.insert(0, inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name):
            chain = (self.names.get(inner.id) or inner.id).split(".") + chain
        else:
            chain.insert(0, "")
        self.check(node, chain)
        if self.own(node):
            if node.attr in ATTRIBUTES:
                self.say(node, "interpreter", node.attr)
            if node.attr == "__class__" and isinstance(node.ctx, ast.Store):
                self.say(node, "interpreter", "__class__")
            if node.attr == "__dict__" and (self.dotted(node.value) or isinstance(node.value, ast.Call)):
                self.say(node, "interpreter", "__dict__")
        self.generic_visit(node)

    def visit_Name(self, node):
        if self.own(node):
            if node.id in BUILTINS:
                self.say(node, "interpreter", node.id)
            meant = self.names.get(node.id)
            if meant and "." in meant:
                self.check(node, meant.split("."))

    def spoken(self, node):
        text = None if id(node) in self.docstrings else folded(node)
        found = SPOKEN.search(text) if text else None
        if found:
            self.say(node, "tests", found.group().strip())

    def visit_Constant(self, node):
        self.spoken(node)

    def visit_BinOp(self, node):
        self.spoken(node)
        self.generic_visit(node)

    def visit_JoinedStr(self, node):
        self.spoken(node)
        self.generic_visit(node)

    def visit_Subscript(self, node):
        self.spoken(node)
        self.generic_visit(node)

    def visit_MatchClass(self, node):
        for name in node.kwd_attrs:
            if name in ATTRIBUTES:
                self.say(node, "interpreter", name)
        self.generic_visit(node)

    def visit_Call(self, node):
        name = getattr(node.func, "id", "")
        if self.own(node) and name in ("getattr", "setattr", "delattr") and len(node.args) >= 2:
            target, wanted = node.args[0], node.args[1]
            foreign = self.dotted(target) is not None
            if isinstance(wanted, ast.Constant) and isinstance(wanted.value, str):
                if wanted.value in ATTRIBUTES:
                    self.say(node, "interpreter", wanted.value)
                self.check(node, (self.dotted(target) or "").split(".") + [wanted.value])
            elif foreign or (getattr(wanted, "id", "") in self.built and getattr(target, "id", "") not in ("self", "cls")):
                self.say(node, "interpreter", name + " of a computed name")
            elif not isinstance(wanted, (ast.Name, ast.Attribute, ast.JoinedStr, ast.Subscript)):
                self.say(node, "interpreter", name + " of a computed name")
            if name != "getattr" and foreign:
                self.say(node, "patching", name + " " + self.dotted(target))
        self.spoken(node)
        called = (self.dotted(node.func) or name or getattr(node.func, "attr", "")).split(".")[-1]
        if self.own(node) and IMPORTS.search(called):
            self.say(node, "interpreter", called)
        if self.own(node) and name in ("vars", "locals") and (not node.args or self.dotted(node.args[0])):
            self.say(node, "interpreter", name)
        if self.own(node) and name == "open" and node.args and isinstance(getattr(node.args[0], "value", None), int):
            self.say(node, "process", "open of a descriptor")
        if self.own(node) and name == "chr":
            self.say(node, "interpreter", "chr")
        if self.own(node) and name == "type" and len(node.args) == 3:
            self.say(node, "compares", "type of three")
        self.generic_visit(node)

    def target(self, node):
        inner = node
        while isinstance(inner, (ast.Attribute, ast.Subscript, ast.Starred)):
            inner = inner.value
        if inner is not node and isinstance(inner, ast.Name):
            meant = self.names.get(inner.id)
            own = self.path.split("/")
            hidden = any(inner.id in names for names in self.locals)
            if meant and not hidden and not meant.startswith(".") and meant.split(".")[0] not in own and self.own(node):
                self.say(node, "patching", meant)
        if isinstance(node, ast.Name) and node.id in ("__getattr__", "__class__", "__path__") and not self.functions:
            self.say(node, "module", node.id)
        if isinstance(node, (ast.Tuple, ast.List)):
            for part in node.elts:
                self.target(part)

    def visit_Assign(self, node):
        for target in node.targets:
            self.target(target)
            if isinstance(target, ast.Name) and target.id in COMPARES and self.own(node):
                self.say(node, "compares", target.id)
        self.generic_visit(node)

    def visit_AugAssign(self, node):
        self.target(node.target)
        self.generic_visit(node)

    visit_AnnAssign = visit_AugAssign

    def visit_Delete(self, node):
        for target in node.targets:
            self.target(target)
        self.generic_visit(node)

    def visit_FunctionDef(self, node):
        if node in self.tree.body and node.name in ("__getattr__", "__dir__") and self.own(node):
            self.say(node, "module", node.name)
        given = [*node.args.args, *node.args.kwonlyargs, *getattr(node.args, "posonlyargs", [])]
        stored = {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
        self.functions += 1
        self.locals.append({part.arg for part in given} | stored)
        self.generic_visit(node)
        self.locals.pop()
        self.functions -= 1

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node):
        bases = {getattr(base, "id", getattr(base, "attr", "")) for base in node.bases}
        for method in node.body:
            if isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)) and method.name in COMPARES:
                touched = any(line in self.added for line in range(method.lineno, method.end_lineno + 1))
                given = method.args.args[1].arg if len(method.args.args) > 1 else None
                looks = any(isinstance(part, ast.Name) and part.id == given for part in ast.walk(method))
                if touched and (not looks or bases & VALUES - {"object"}):
                    self.say(method, "compares", method.name)
        if "ModuleType" in bases:
            self.say(node, "module", "ModuleType")
        self.generic_visit(node)


def shadows(path):
    """The name of a module of Python's own or of a package that lies beside the repository, which a new file hides."""
    found = re.match(r"(?:src/|lib/)?([A-Za-z_]\w*)(?:\.py|/__init__\.py)$", path)
    if not found:
        return None
    name = found.group(1)
    if name in sys.builtin_module_names or name in getattr(sys, "stdlib_module_names", ()):
        return name
    places = ["/usr/lib/python3*", "/usr/lib/python3/dist-packages", "/usr/local/lib/python3*/*-packages", "/opt/*/lib/python3*", "/opt/*/envs/*/lib/python3*", "/opt/*/envs/*/lib/python3*/site-packages"]
    for place in places:
        if glob.glob(os.path.join(place, name + ".py")) or glob.glob(os.path.join(place, name, "__init__.py")):
            return name
    return None


def main():
    plan = json.load(sys.stdin)
    found = []
    for file in plan["files"]:
        path, added = file["path"], set(file["added"])
        hidden = shadows(path) if file["isNew"] else None
        if hidden:
            found.append({"path": path, "line": 1, "kind": "shadow", "token": hidden})
        try:
            with open(os.path.join(plan["folder"], path), "rb") as source:
                tree = ast.parse(source.read())
            reader = Reader(tree, added, path)
            reader.visit(tree)
        except (OSError, SyntaxError, ValueError, RecursionError):
            found.append({"path": path, "line": 1, "kind": "unreadable", "token": ""})
            continue
        seen = set()
        for one in reader.found:
            key = (one["kind"], one["token"], one["line"])
            if key not in seen:
                seen.add(key)
                found.append(one)
    print(json.dumps(found[:MOST * 5]))


main()
