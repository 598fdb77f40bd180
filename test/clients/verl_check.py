"""Runs the example's agent loop as verl's worker does, and prints what it would train on."""

import asyncio
import json
import os
import sys
from types import SimpleNamespace

os.environ["ROLLOUTD_SERVER"] = sys.argv[1]
rows = json.loads(sys.argv[2])

import verl_agent_loop  # noqa: E402
from verl.experimental.agent_loop.agent_loop import REGISTERED  # noqa: E402


async def main():
    config = SimpleNamespace(prompt_length=4096, response_length=4096)
    loop = REGISTERED["rolloutd"](config)
    assert type(loop) is verl_agent_loop.RolloutdAgentLoop
    runs = [loop.run({"temperature": 1.0}, raw_prompt=row.pop("prompt"), **row) for row in rows]
    outputs = await asyncio.gather(*runs)
    for output in outputs:
        lengths = {
            len(part)
            for part in (output.response_ids, output.response_mask, output.response_logprobs)
        }
        assert len(lengths) == 1, lengths
    await loop.client.close()
    return {"rewards": [one.reward_score for one in outputs], "turns": outputs[0].num_turns}


print(json.dumps(asyncio.run(main())))
