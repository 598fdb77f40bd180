"""Reads conversations as JSON lines, and writes what transformers makes of them: text and ids, or a refusal."""

import json
import sys

from transformers import AutoTokenizer
from transformers.utils.chat_template_utils import _compile_jinja_template

tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
# Rendered directly, as apply_chat_template of transformers 5 leaves out fields that are None.
template = _compile_jinja_template(tokenizer.chat_template)
for line in sys.stdin:
    case = json.loads(line)
    try:
        text = case.get("text")
        if text is None:
            text = template.render(
                messages=case["messages"],
                tools=case["tools"] or None,
                add_generation_prompt=True,
                **tokenizer.special_tokens_map,
                **case["variables"],
            )
        ids = tokenizer(text, add_special_tokens=False).input_ids
        print(json.dumps({"text": text, "ids": ids}), flush=True)
    except Exception as error:  # A template refuses in whatever way it likes.
        print(json.dumps({"refused": str(error)[:200]}), flush=True)
