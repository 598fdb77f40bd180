"""What the trainers have in common: rows, a model too small to learn anything, and a client that sees what they get."""

from rolloutd import Client
from transformers import AutoTokenizer, Qwen3Config, Qwen3ForCausalLM

BROKEN = "What is nine minus one?"


def row(problem, truth):
    return {
        "data_source": "math",
        "prompt": [{"role": "user", "content": problem}],
        "reward_model": {"ground_truth": truth},
    }


# Some right and some wrong; all wrong; and one that the simulated engine has no answer to, so that it has no verdict.
ROWS = [row("What is seven times six?", "42"), row("What is two plus two?", "4"), row(BROKEN, "8")]


def tiny(model_dir):
    """A model of random weights with the tokenizer of the simulated engine."""
    tokenizer = AutoTokenizer.from_pretrained(model_dir)
    config = Qwen3Config(
        **{
            "vocab_size": len(tokenizer),
            "hidden_size": 64,
            "intermediate_size": 128,
            "head_dim": 16,
        },
        **{"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2},
        eos_token_id=tokenizer.eos_token_id,
    )
    return Qwen3ForCausalLM(config), tokenizer


class Watched(Client):
    """Keeps what the trainer is given. The simulated policy goes by the seed, where an engine draws."""

    def __init__(self, *args):
        super().__init__(*args)
        self.given = []

    def run_many(self, requests):
        whole = [
            {**request, "sampling": {**request["sampling"], "seed": at}}
            for at, request in enumerate(requests)
        ]
        done = {one.id: one for one in super().run_many(whole)}
        self.given = [done[request["id"]] for request in whole]
        yield from self.given
