"""Calls the example's rollout function as TRL's trainer does, and prints what it would train on."""

import json
import sys
from types import SimpleNamespace

from rolloutd import Client
from trl_rollout import reward_of_rolloutd, rollouts_of

server, rows = sys.argv[1], json.loads(sys.argv[2])
EOS = 7


class Seeded(Client):
    """The simulated policy goes by the seed, so that the rollouts of one prompt differ as an engine's do."""

    def run_many(self, requests):
        seeded = [
            {**request, "sampling": {**request["sampling"], "seed": at}}
            for at, request in enumerate(requests)
        ]
        assert seeded[0]["sampling"] == {
            **{"temperature": 0.9, "max_tokens": 64, "top_p": 0.95, "repetition_penalty": 1.0},
            "seed": 0,
        }
        return super().run_many(seeded)


args = SimpleNamespace(
    **{"temperature": 0.9, "top_p": 0.95, "top_k": 0, "min_p": None, "repetition_penalty": 1.0},
    max_completion_length=64,
)
trainer = SimpleNamespace(args=args, processing_class=SimpleNamespace(eos_token_id=EOS))
rollout_func = rollouts_of(rows, Seeded(server))
# Its sampler repeats each prompt for as many generations as a group has.
prompts = [row["prompt"] for row in rows for _ in range(2)]
output = rollout_func(prompts, trainer)
assert all(len(values) == len(prompts) for values in output.values())
for name in ("completion_ids", "logprobs", "env_mask"):
    assert [len(one) for one in output[name]] == [len(one) for one in output["logprobs"]], name
try:
    rollout_func(prompts[-2:], trainer)
    ended = None
except RuntimeError as error:
    ended = "no scripted policy" in str(error)
rewards = reward_of_rolloutd(prompts=prompts, completions=[], **output)
print(json.dumps({"rewards": rewards, "masks": output["env_mask"], "all_broken": ended}))
