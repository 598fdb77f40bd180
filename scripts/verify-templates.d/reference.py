"""
Renders chat templates as transformers does and tokenises with the tokenizers package, for scripts/verify-templates.

Reads JSON lines. {"open": NAME, "template": TEXT, "special": {...}, "tokenizer": FILE, "added": [...]} opens a template;
{"render": NAME, "messages": [...], "tools": [...] or null, "variables": {...}, "ids": bool} answers with
{"text": ..., "ids": ...} or {"refused": ...}.
"""

import datetime
import json
import sys

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOW = datetime.datetime(1970, 1, 1)


class Generation(jinja2.ext.Extension):
    """The tag that marks what an assistant says; it changes no text."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_said"), [], [], body).set_lineno(line)

    def _said(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    made = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = raise_exception
    made.globals["strftime_now"] = lambda form: NOW.strftime(form)
    return made


opened = {}
ENVIRONMENT = environment()


def open_template(request):
    tokenizer = None
    if request.get("tokenizer"):
        import tokenizers
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(request["tokenizer"])
        added = [tokenizers.AddedToken(token, normalized=False, special=True) for token in request["added"]]
        tokenizer.add_special_tokens(added)
    opened[request["open"]] = (ENVIRONMENT.from_string(request["template"]), request["special"], tokenizer)
    return {}


def render(request):
    template, special, tokenizer = opened[request["render"]]
    text = template.render(
        messages=request["messages"],
        tools=request["tools"] or None,
        documents=None,
        add_generation_prompt=request.get("add_generation_prompt", True),
        **special,
        **request["variables"],
    )
    if not request.get("ids") or tokenizer is None:
        return {"text": text}
    return {"text": text, "ids": tokenizer.encode(text, add_special_tokens=False).ids}


for line in sys.stdin:
    request = json.loads(line)
    try:
        answer = open_template(request) if "open" in request else render(request)
    except Exception as error:  # A template refuses in whatever way it likes.
        answer = {"refused": f"{type(error).__name__}: {error}"[:300]}
    print(json.dumps(answer), flush=True)
