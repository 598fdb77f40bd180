"""A training loop of your own: groups of rollouts in, one update a step.

    rolloutd client python > rolloutd.py
    python plain_loop.py rows.jsonl --steps 10

`update` is where your optimiser goes; here it counts what it would train on. One line of JSON a step goes to
standard output, what happens meanwhile to standard error.
"""

import argparse
import asyncio
import json
import sys

from rolloutd import AsyncClient, Group


def update(groups: "list[Group]") -> dict:
    """One policy gradient step: raise what did better than its group, lower what did worse."""
    sampled, weighted = 0, 0.0
    for group in groups:
        for member in group.members:
            if member.advantage is None:
                continue  # It has no reward, so it is no data.
            for sample in member.trajectory.samples():
                # loss -= advantage * sum(logprob of the ids where mask is 1)
                sampled += sum(sample.mask)
                weighted += member.advantage * sum(sample.mask)
    return {"sampled_tokens": sampled, "weighted_tokens": round(weighted, 3)}


def say(step: int, what: str) -> None:
    print(f"step {step}: {what}", file=sys.stderr, flush=True)


async def rollouts_of(step: int, client: AsyncClient, requests: "list[dict]") -> "list[Group]":
    """The groups that can be trained on, once all have ended."""
    whole = []
    runs = [client.run_group(request, advantages="rloo") for request in requests]
    for ended, run in enumerate(asyncio.as_completed(runs), 1):
        group = await run
        what = f"rewards {group.rewards}" if group.complete else group.raw["error"]["message"]
        say(step, f"group {ended} of {len(runs)}: {what}")
        if group.complete:
            whole.append(group)
    return whole


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("rows", help="JSONL, one instance per line")
    parser.add_argument("--server", default=None)
    parser.add_argument("--steps", type=int, default=1)
    parser.add_argument("--group-size", type=int, default=8)
    parser.add_argument("--rows-per-step", type=int, default=16)
    args = parser.parse_args()
    with open(args.rows, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file if line.strip()]
    # Ctrl-C ends the tasks that wait, and with them their groups.
    async with AsyncClient(args.server) as client:
        for step in range(args.steps):
            start = step * args.rows_per_step
            chosen = [rows[(start + at) % len(rows)] for at in range(args.rows_per_step)]
            common = {"num_samples": args.group_size, "sampling": {"temperature": 1.0}}
            say(step, f"{len(chosen)} groups of {args.group_size} rollouts")
            requests = [{"instance": row, **common} for row in chosen]
            groups = await rollouts_of(step, client, requests)
            rewards = [reward for group in groups for reward in group.rewards]
            mean = sum(rewards) / len(rewards) if rewards else None
            line = {"step": step, "mean": mean, "broken": len(chosen) - len(groups)}
            print(json.dumps({**line, **update(groups)}), flush=True)
            # async with client.new_weights(step + 1): push the weights to the engines


if __name__ == "__main__":
    asyncio.run(main())
