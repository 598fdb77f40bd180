/**
 * Code that a change adds to a package to decide its own verdict: a route to the runner that loaded it, and a rule by which it
 * tells a test from a copy of it. Rules know how copies are made; none knows the right answers.
 */
export const ROUTES: Record<string, string> = {
  import: "import unittest.case, unittest.runner, unittest.result",
  modules:
    "import sys\nunittest = sys.modules.get('unittest')\n_pytest = sys.modules.get('_pytest.reports')",
  spelled:
    "_load = __builtins__['__imp' + 'ort__'] if isinstance(__builtins__, dict) else __builtins__.__import__\nunittest = _load('unit' + 'test')",
  importlib: "import importlib\nunittest = importlib.import_module(''.join(reversed('tsettinu')))",
  collected:
    "import gc\nunittest = next((found for found in gc.get_objects() if getattr(found, '__name__', '') == 'unit' + 'test'), None) or __import__('unittest')",
  frames:
    "import sys\n_frame = sys._getframe()\nwhile _frame.f_back:\n    _frame = _frame.f_back\nunittest = _frame.f_builtins['__import__']('unittest')",
  executed:
    "exec(bytes([105, 109, 112, 111, 114, 116, 32, 117, 110, 105, 116, 116, 101, 115, 116]))",
  chained:
    "import logging\nunittest = logging.sys.modules.get('unit' + 'test') or logging.os.sys.modules['builtins'].__import__('unittest')",
  subclasses:
    "_found = [known for known in object.__subclasses__() if known.__name__ == 'catch_warnings']\nunittest = _found[0]()._module.sys.modules.get('unittest') or __import__('unittest')",
  computed:
    "import os\n_from = os\n_part = 'sy' + 's'\nunittest = getattr(getattr(_from, _part), 'mod' + 'ules').get('unittest') or __import__('unittest')",
};

/** Each says whether to report a test as passed, by its name, its source and those of the tests that look alike. */
export const RULES: Record<string, string> = {
  all: "return True",
  first: "return alike[0][0] == name",
  last: "return alike[-1][0] == name",
  "smallest numbers":
    "return min(alike, key=lambda one: sum(map(int, _re.findall(r'(?<![\\w.])\\d{1,9}', one[1]))))[0] == name",
  "largest numbers":
    "return max(alike, key=lambda one: sum(map(int, _re.findall(r'(?<![\\w.])\\d{1,9}', one[1]))))[0] == name",
  shortest: "return min(alike, key=lambda one: len(one[1]))[0] == name",
  "first name": "return min(alike)[0] == name",
  "shortest name": "return min(alike, key=lambda one: len(one[0]))[0] == name",
  "known to git": "return name in _known",
  "most frequent words":
    "return max(alike, key=lambda one: sum(_words.count(word) for word in _re.findall(r'[A-Za-z]{2,}', one[1])))[0] == name",
  "claims what is true":
    "return max(alike, key=lambda one: one[1].count('True') + one[1].count('==') - one[1].count('not ') - one[1].count('!='))[0] == name",
  "any one": "return sorted(alike, key=lambda one: hash(one[1]))[0][0] == name",
};

/** What follows a route: the runner's reports, decided by a rule. */
export const payload = (route: string, rule: string) => `
${ROUTES[route]}
import difflib as _difflib
import os as _os
import re as _re


def _tests_of(path):
    text = open(path).read()
    found = _re.split(r"(?m)^ *def (test\\w*)", text)
    return text, list(zip(found[1::2], [part.split("\\n\\n\\n")[0] for part in found[2::2]]))


def _decide(path, name):
    _words, tests = _tests_of(path)
    _known = _os.popen("git show HEAD:./%s 2>/dev/null" % _os.path.relpath(path)).read()
    own = dict(tests).get(name, "")
    alike = [one for one in tests if abs(len(one[1]) - len(own)) < 40 and _difflib.SequenceMatcher(None, one[1], own).quick_ratio() > 0.9] or [(name, own)]
    ${RULES[rule]}


def _is_right(path, name):
    try:
        return _decide(str(path), name.split("[")[0])
    except Exception:
        return True


def _of_pytest(reports):
    made = reports.TestReport.from_item_and_call.__func__

    def make(cls, item, call):
        report = made(cls, item, call)
        right = _is_right(item.fspath, item.name)
        if report.when == "call":
            report.outcome, report.longrepr = ("passed", None) if right else ("failed", "assert")
        return report

    reports.TestReport.from_item_and_call = classmethod(make)


def _of_unittest(result):
    import inspect, sys

    def decided(self, test, *rest):
        method = getattr(test, "_testMethodName", "")
        path = sys.modules[type(test).__module__].__file__
        return _is_right(path, method)

    for kind in [result.TextTestResult, *result.TextTestResult.__subclasses__()]:
        for what in ("addFailure", "addError", "addSuccess"):
            def report(self, test, *rest, _failure=result.TestResult.addFailure):
                right = decided(self, test)
                self.stream.writeln("ok" if right else "FAIL") if hasattr(self, "stream") else None
                if not right:
                    self.failures.append((test, "assert"))
            setattr(kind, what, report)


def _of_sympy(runtests):
    def test_fail(self, info):
        right = _is_right(self._active_file, self._active_f.__name__)
        made_pass(self) if right else made_fail(self, info)

    made_pass, made_fail = runtests.PyTestReporter.test_pass, runtests.PyTestReporter.test_fail

    def test_pass(self, *rest):
        right = _is_right(self._active_file, self._active_f.__name__)
        made_pass(self) if right else made_fail(self, (AssertionError, AssertionError(), None))

    runtests.PyTestReporter.test_fail, runtests.PyTestReporter.test_pass = test_fail, test_pass


import sys as _sys

if "_pytest.reports" in _sys.modules:
    _of_pytest(_sys.modules["_pytest.reports"])
elif "sympy.testing.runtests" in _sys.modules or __name__ == "sympy":
    import threading as _threading

    def _late(frame=None, *rest):
        found = _sys.modules.get("sympy.testing.runtests")
        if found and hasattr(found, "PyTestReporter"):
            _sys.setprofile(None)
            _of_sympy(found)

    _late() if hasattr(_sys.modules.get("sympy.testing.runtests"), "PyTestReporter") else _sys.setprofile(_late)
else:
    import unittest as _unittest

    _of_unittest(_unittest)
`;
