"""Calls the example's rollout function as TRL's trainer does, and prints what it would train on."""

import json
import sys
from types import SimpleNamespace

from rolloutd import Client
from trl_rollout import reward_of_rolloutd, rollouts_of

server, rows = sys.argv[1], json.loads(sys.argv[2])
rollout_func = rollouts_of(rows, Client(server))
trainer = SimpleNamespace(num_generations=2, args=SimpleNamespace(temperature=1.0))
output = rollout_func([row["prompt"] for row in rows], trainer)
for name in ("completion_ids", "logprobs", "env_mask"):
    assert [len(one) for one in output[name]] == [len(one) for one in output["logprobs"]], name
print(json.dumps({"rewards": reward_of_rolloutd(**output), "mask": output["env_mask"][0]}))
