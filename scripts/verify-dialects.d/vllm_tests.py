"""
Runs vLLM's own tests of its tool parsers with the dialects in their place, as a pytest plugin. vLLM itself is not
needed: whatever the tests import of it is a stand-in, and each parser of it asks answer.ts.

A test fails here where its assertion does, so that names, arguments and their types are compared as vLLM compares them.
"""

import ast
import importlib.abc
import importlib.machinery
import json
import os
import re
import subprocess
import sys
import types
from unittest.mock import MagicMock

import pytest

#: By vLLM's name of a parser; those without a dialect are left out.
DIALECTS = {
    "apertus": "apertus", "deepseek_v3": "deepseek", "deepseek_v31": "deepseek", "deepseek_v32": "dsml",
    "deepseek_v4": "dsml", "functiongemma": "functiongemma", "gemma4": "gemma4", "gigachat3": "gigachat",
    "glm45": "glm", "glm47": "glm", "granite": "granite", "granite-20b-fc": "function_call", "granite4": "hermes",
    "hermes": "hermes", "hunyuan_a13b": "tool_calls", "hy_v3": "glm", "internlm": "internlm",
    "jamba": "tool_calls", "kimi_k2": "kimi", "kimi_k3": "kimi_k3", "lfm2": "lfm2", "llama3_json": "llama3_json",
    "llama4_json": "llama3_json", "llama4_pythonic": "pythonic", "minicpm5": "minicpm", "minimax_m2": "minimax_m2",
    "minimax_m3": "minimax_m3", "mistral": "mistral", "olmo3": "olmo3", "phi4_mini_json": "granite",
    "poolside_v1": "glm", "pythonic": "pythonic", "qwen3_coder": "qwen3_coder", "qwen3_xml": "qwen3_coder",
    "seed_oss": "seed_oss", "step3p5": "qwen3_coder", "xlam": "llama3_json", "minimax": "tool_calls",
}
#: By the class of a parser, where a test takes that.
CLASSES = {
    "apertus": "apertus", "deepseekv3": "deepseek_v3", "deepseekv31": "deepseek_v31", "deepseekv32": "deepseek_v32",
    "deepseekv4": "deepseek_v4", "functiongemma": "functiongemma", "gemma4": "gemma4", "glm4moemodel": "glm45",
    "glm47moemodel": "glm47", "granite": "granite", "granite20bfc": "granite-20b-fc", "granite4": "granite4",
    "hermes2pro": "hermes", "hunyuana13b": "hunyuan_a13b", "hyv3": "hy_v3", "internlm2": "internlm", "jamba": "jamba",
    "kimik2": "kimi_k2", "kimik3": "kimi_k3", "lfm2": "lfm2", "llama3json": "llama3_json",
    "llama4pythonic": "llama4_pythonic", "minicpm5xml": "minicpm5", "minimaxm2": "minimax_m2", "minimaxm3": "minimax_m3",
    "mistral": "mistral", "olmo3python": "olmo3", "phi4minijson": "phi4_mini_json", "poolsidev1": "poolside_v1",
    "pythonic": "pythonic", "qwen3coder": "qwen3_coder", "qwen3xml": "qwen3_xml", "seedoss": "seed_oss",
    "step3p5": "step3p5", "xlam": "xlam", "minimax": "minimax", "gigachat3": "gigachat3",
}


class Bag:
    """What a test makes of vLLM's classes: the fields that it was given."""

    tools = tool_choice = messages = model = skip_special_tokens = include_reasoning = response_format = None

    def __init__(self, *_, **fields):
        self.__dict__.update(fields)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return None

    def __eq__(self, other):
        fields = [{name: one for name, one in each.__dict__.items() if name != "id"} for each in (self, other)]
        return fields[0] == fields[1]

    def model_dump(self, **_):
        return json.loads(json.dumps(self, default=lambda bag: bag.__dict__))


def plain(value):
    if isinstance(value, Bag):
        return {name: plain(one) for name, one in value.__dict__.items()}
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list) else value


def tools_of(*sources):
    for tools in sources:
        if isinstance(tools, list) and tools:
            found = [plain(tool) for tool in tools]
            functions = [tool.get("function", tool) for tool in found if isinstance(tool, dict)]
            return [
                {"type": "function", "function": {"name": each["name"], "description": "", "parameters": each.get("parameters") or {}}}
                for each in functions
                if "name" in each
            ]
    return []


answers = subprocess.Popen(
    ["bun", os.path.join(os.path.dirname(__file__), "answer.ts")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
)


reads = 0


def read(dialect, text, tools):
    global reads
    if not isinstance(text, str):
        pytest.skip("text of a stand-in")
    reads += 1
    answers.stdin.write(json.dumps({"dialect": dialect, "text": text, "tools": tools}) + "\n")
    answers.stdin.flush()
    return json.loads(answers.stdout.readline())


class Arguments(str):
    """JSON that is equal to the same JSON with other spaces, as some tests compare it as text."""

    __hash__ = str.__hash__

    def __eq__(self, other):
        try:
            return json.loads(self) == json.loads(other)
        except ValueError:
            return False


def spaced(arguments):
    return Arguments(json.dumps(json.loads(arguments), ensure_ascii=False))


def parser_class(name):
    if name not in DIALECTS:
        pytest.skip(f"no dialect for {name}")

    class Parser:
        def __init__(self, tokenizer=None, tools=None, *_, **__):
            self.tools = tools
            self.model_tokenizer = tokenizer

        def adjust_request(self, request):
            return request

        def extract_tool_calls(self, model_output, request=None, **_):
            reply = read(DIALECTS[name], model_output, tools_of(getattr(request, "tools", None), self.tools))
            known = [call for call in reply["calls"] if call["status"] in ("ok", "unknown_tool")]
            calls = [
                Bag(
                    id=call["id"] or f"chatcmpl-tool-{at:08}",
                    type="function",
                    function=Bag(name=call["name"], arguments=spaced(call["arguments"])),
                )
                for at, call in enumerate(known)
            ]
            content = reply["content"] if calls else model_output
            return Bag(tools_called=bool(calls), tool_calls=calls, content=content or None)

        def extract_tool_calls_streaming(self, *_, **__):
            pytest.skip("streaming")

        def __getattr__(self, attribute):
            pytest.skip(f"internal: {attribute}")

    return Parser


class Manager:
    get_tool_parser = staticmethod(parser_class)


def constant(module, name):
    """Text that a module of vLLM gives a name, read from its source."""
    path = module.replace(".", "/") + ".py"
    if os.path.exists(path):
        for node in ast.parse(open(path).read()).body:
            targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
            if any(getattr(target, "id", None) == name for target in targets):
                try:
                    return ast.literal_eval(node.value)
                except ValueError:
                    break
    return MagicMock()


class StandIn(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name in ("ToolParserManager", "ParserManager"):
            return Manager
        if name.endswith("ToolParser") and name != "ToolParser":
            key = re.sub(r"[^a-z0-9]", "", name[: -len("ToolParser")].lower())
            return parser_class(CLASSES.get(key, key)) if CLASSES.get(key) in DIALECTS else MagicMock()
        if name.isupper() or name.startswith("_"):
            return constant(self.__name__, name)
        return type(name, (Bag,), {}) if name[:1].isupper() else MagicMock()


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    roots = {"vllm", "torch", "transformers", "openai_harmony", "mistral_common", "huggingface_hub", "openai", "partial_json_parser", "xgrammar", "pydantic", "safetensors", "tokenizers"}

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in self.roots:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return StandIn(spec.name)

    def exec_module(self, module):
        module.__path__ = []


sys.meta_path.insert(0, Finder())


@pytest.fixture(scope="session")
def default_tokenizer():
    return MagicMock()


#: Where the dialects differ on purpose, by a part of a test's name.
EXPLAINED = {
    "test_invalid_json_still_extracted": "arguments that are no JSON are a malformed call, of which the model is told",
    "test_invalid_funcall_id_skipped": "a call whose id has no number is read, not skipped",
    "minicpm5xml_tool_parser.py::test_properties_wrapped": "arguments stay as the model wrote them",
    "minicpm5xml_tool_parser.py::test_arguments_wrapped": "arguments stay as the model wrote them",
    "minicpm5xml_tool_parser.py::test_extra_arguments": "arguments stay as the model wrote them",
    "minicpm5xml_tool_parser.py::test_zero_arg_tool": "arguments stay as the model wrote them",
    "minicpm5xml_tool_parser.py::test_alias": "no tool is called by another's name",
    "minicpm5xml_tool_parser.py::test_tokenizer_space": "tags of a tokenizer that lost its spaces are not guessed",
    "minicpm5xml_tool_parser.py::test_collapsed": "tags of a tokenizer that lost its spaces are not guessed",
    "apertus_tool_parser.py::TestExtractToolCalls::test_incomplete": "a call without an end is told of, not carried out",
    "xlam_tool_parser.py::test_extract_tool_calls[single_tool_with": "one dialect a model: the template shows a bare list",
}

#: What is compared: tests that had a reply read, and that assert something of what came out.
compared, disagreed = [], []


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    before = reads
    outcome = yield
    kind = outcome.excinfo[0] if outcome.excinfo else None
    if reads == before or kind is pytest.skip.Exception:
        return
    if kind is None:
        compared.append(item.nodeid)
    elif issubclass(kind, AssertionError):
        frame = outcome.excinfo[2]
        while frame.tb_next:
            frame = frame.tb_next
        line = open(frame.tb_frame.f_code.co_filename).read().splitlines()[frame.tb_lineno - 1].strip()
        expects_none = r"tools_called is False|not \S*tools_called|tool_calls == \[\]|len\(\S*tool_calls\) == 0|not \S*tool_calls\b"
        if re.search(rf"\bcontent\b|{expects_none}", line) and "arguments" not in line:
            return  # How text is trimmed, and that a broken call is told of, are choices of each reader's.
        compared.append(item.nodeid)
        disagreed.append(f"{item.nodeid}: {line}")


def pytest_terminal_summary(terminalreporter):
    unexplained = 0
    for each in disagreed:
        why = next((why for name, why in EXPLAINED.items() if name in each), None)
        unexplained += why is None
        terminalreporter.write_line(f"differs  {each}: {why or 'NOT EXPLAINED'}")
    agreed = len(compared) - len(disagreed)
    rest = f"{len(disagreed) - unexplained} differ on purpose, {unexplained} for no reason that is known"
    terminalreporter.write_line(f"{agreed} of {len(compared)} tests of names and arguments agree; {rest}")


def pytest_sessionfinish(session):
    # Tests of what the dialects do not have fail too; only what was compared counts.
    known = lambda each: any(name in each for name in EXPLAINED)
    session.exitstatus = 0 if compared and all(known(each) for each in disagreed) else 1
