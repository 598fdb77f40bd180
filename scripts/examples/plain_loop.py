"""A training loop of your own: groups of rollouts in, one update a step.

    rolloutd client python > rolloutd.py
    python plain_loop.py rows.jsonl --steps 10

`update` is where your optimiser goes; here it counts what it would train on.
"""

import argparse
import json
from concurrent.futures import ThreadPoolExecutor

from rolloutd import Client, Group


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


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("rows", help="JSONL, one instance per line")
    parser.add_argument("--server", default=None)
    parser.add_argument("--steps", type=int, default=1)
    parser.add_argument("--group-size", type=int, default=8)
    parser.add_argument("--rows-per-step", type=int, default=16)
    args = parser.parse_args()
    with open(args.rows, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file if line.strip()]
    with Client(args.server) as client, ThreadPoolExecutor(args.rows_per_step) as threads:
        for step in range(args.steps):
            start = step * args.rows_per_step
            chosen = [rows[(start + at) % len(rows)] for at in range(args.rows_per_step)]
            requests = [
                {"instance": row, "num_samples": args.group_size, "sampling": {"temperature": 1.0}}
                for row in chosen
            ]
            groups = list(threads.map(lambda request: client.run_group(request, "rloo"), requests))
            whole = [group for group in groups if group.complete]
            rewards = [reward for group in whole for reward in group.rewards]
            mean = sum(rewards) / len(rewards) if rewards else None
            broken = len(groups) - len(whole)
            print(json.dumps({"step": step, "mean": mean, "broken": broken, **update(whole)}))
            # with client.new_weights(step + 1): push the weights to the engines


if __name__ == "__main__":
    main()
