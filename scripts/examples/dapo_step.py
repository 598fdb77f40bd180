"""One step of DAPO: so many informative groups, however many rollouts that takes.

    rolloutd client python > rolloutd.py
    python dapo_step.py rows.jsonl --groups 32 --group-size 16

The service starts groups as slots free up, ends a group once it can teach nothing, and ends what is left when
the goal is reached; what is unfinished then goes on in the next step, under the new weights.
"""

import argparse
import json
import os
import sys

from rolloutd import Client, Group


def update(groups: "list[Group]") -> int:
    """Your optimiser: advantages are DAPO's, and `token_weight` averages over all tokens of a group."""
    trained = 0
    for group in groups:
        for member in group.members:
            if member.advantage is not None and member.trajectory is not None:
                trained += sum(sum(sample.mask) for sample in member.trajectory.samples())
    return trained


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("rows")
    parser.add_argument("--server", default=None)
    parser.add_argument("--groups", type=int, default=32)
    parser.add_argument("--group-size", type=int, default=16)
    parser.add_argument("--steps", type=int, default=1)
    parser.add_argument("--series", default=f"dapo-{os.getpid()}")
    args = parser.parse_args()
    with open(args.rows, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file if line.strip()]
    with Client(args.server) as client:
        for step in range(args.steps):
            request = {
                # Each batch goes on where the last one of its series was: only the first is given the rows.
                "series": args.series,
                "instances": rows if step == 0 else [],
                "goal": {"groups": args.groups},
                "num_samples": args.group_size,
                "sampling": {"temperature": 1.0},
            }
            batch = client.batch(request)
            groups = []
            for group in batch.groups(advantages="dapo"):
                groups.append(group)
                told = f"step {step}: group {len(groups)} of {args.groups}: rewards {group.rewards}"
                print(told, file=sys.stderr, flush=True)
            line = {"step": step, "groups": len(groups), "tokens": update(groups)}
            print(json.dumps(line), flush=True)
            # with client.new_weights(step + 1): push the weights to the engines


if __name__ == "__main__":
    main()
