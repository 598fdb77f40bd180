"""rolloutd as the `rollout_func` of TRL's GRPOTrainer (written for TRL 1.16).

    from trl_rollout import reward_of_rolloutd, rollouts_of

    trainer = GRPOTrainer(
        model=..., train_dataset=dataset, args=GRPOConfig(num_generations=8, ...),
        rollout_func=rollouts_of(rows, Client()), reward_funcs=reward_of_rolloutd,
    )

`rows` are the instances, and the dataset's `prompt` is theirs. The service's backend has to be the engine that
the trainer keeps in step, by token ids.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Dict, List

from rolloutd import Client, Group, Sample

Row = Dict[str, Any]


def rollouts_of(rows: List[Row], client: Client, **request: Any) -> Callable[..., Dict[str, list]]:
    """:param request: what each rollout is besides its instance, such as `agent` and `limits`"""
    row_of = {_key(row["prompt"]): row for row in rows}

    def rollout_func(prompts: List[Any], trainer: Any) -> Dict[str, list]:
        def run(prompt: Any) -> Group:
            body = {"instance": row_of[_key(prompt)], "num_samples": trainer.num_generations}
            sampling = {"temperature": trainer.args.temperature}
            return client.run_group({**body, "sampling": sampling, "tokens": "exact", **request})

        with ThreadPoolExecutor(max(1, len(prompts))) as threads:
            groups = list(threads.map(run, prompts))
        output: Dict[str, list] = {
            name: [] for name in ("prompt_ids", "completion_ids", "logprobs", "env_mask", "reward")
        }
        for group in groups:
            if not group.complete:
                # A group with holes would be trained as if its broken rollouts were wrong.
                raise RuntimeError(f"group {group.id}: {group.raw['error']}")
            for member in group.members:
                # A chat template that rewrites history makes several; the last holds what was answered.
                _append(output, member.trajectory.samples()[-1], member.reward)
        return output

    return rollout_func


def reward_of_rolloutd(reward: List[float], **_: Any) -> List[float]:
    """The trainer's reward function: EVAL's verdicts, as they came with the rollouts."""
    return reward


def _append(output: Dict[str, list], sample: Sample, reward: Any) -> None:
    start = sample.prompt_length
    output["prompt_ids"].append(sample.ids[:start])
    output["completion_ids"].append(sample.ids[start:])
    output["logprobs"].append((sample.logprobs or [])[start:])
    output["env_mask"].append(sample.mask[start:])
    output["reward"].append(reward)


def _key(prompt: Any) -> str:
    return json.dumps(prompt, sort_keys=True)
