"""Runs the example's agent loop as verl's workers do, and prints what it would train on."""

import asyncio
import json
import os
import sys
from types import SimpleNamespace

os.environ["ROLLOUTD_SERVER"] = sys.argv[1]
rows = json.loads(sys.argv[2])

import verl_agent_loop  # noqa: E402
from verl.experimental.agent_loop.agent_loop import REGISTERED  # noqa: E402

# What verl's dataset, trainers and workers add to a row; a tensor is no JSON.
OWN = {
    **{
        "agent_name": "rolloutd",
        "index": 0,
        "priority": 3,
        "tools_kwargs": {},
        "interaction_kwargs": {},
    },
    **{"uid": "5f", "session_id": 1, "global_steps": 7, "dummy_tensor": object()},
}


def loop_with(prompt_length, response_length):
    loop = REGISTERED["rolloutd"](
        SimpleNamespace(prompt_length=prompt_length, response_length=response_length)
    )
    assert type(loop) is verl_agent_loop.RolloutdAgentLoop
    return loop


async def run(loop, row):
    return await loop.run(
        {"temperature": 1.0, "logprobs": True}, raw_prompt=row["prompt"], **row, **OWN
    )


async def main():
    assert set(OWN) <= verl_agent_loop.VERLS_OWN
    # verl makes a loop for each rollout.
    outputs = await asyncio.gather(*[run(loop_with(4096, 4096), row) for row in rows[:2]])
    short = await run(loop_with(5, 4), rows[0])
    whole = outputs[0].prompt_ids + outputs[0].response_ids
    assert short.prompt_ids + short.response_ids == whole[:9]
    for output in [*outputs, short]:
        parts = (output.response_ids, output.response_mask, output.response_logprobs)
        assert len({len(part) for part in parts}) == 1
    try:
        await run(loop_with(4096, 4096), rows[2])
        broken = None
    except RuntimeError as error:
        broken = "no scripted policy" in str(error)
    await verl_agent_loop._client().close()
    return {
        "rewards": [one.reward_score for one in outputs],
        "turns": outputs[0].num_turns,
        "cut_mask": short.response_mask,
        "broken": broken,
    }


print(json.dumps(asyncio.run(main())))
