"""rolloutd as the `rollout_func` of TRL's GRPOTrainer (run with TRL 1.16: `scripts/try-trainers`).

    from trl_rollout import reward_of_rolloutd, rollouts_of

    trainer = GRPOTrainer(
        model=..., train_dataset=dataset, rollout_func=rollouts_of(rows), reward_funcs=reward_of_rolloutd,
        args=GRPOConfig(num_generations=8, use_vllm=True, vllm_mode="server", vllm_server_base_url=URL, ...),
    )

`rows` are the instances, and the dataset's `prompt` is theirs. The service's backend is the vLLM server that TRL
keeps in step: `rolloutd serve --backend URL/v1 --model-dir MODEL`. Every rank runs its own share of the
rollouts, so every node has to reach the service ($ROLLOUTD_SERVER). TRL does not cut what a rollout function
gives: `rollouts_of(rows, agent={"max_context_tokens": 16384})` bounds what has to fit into its memory.
"""

import json
import uuid
from typing import Any, Callable, Dict, List, Optional

from rolloutd import Client, Done

Row = Dict[str, Any]
Rollouts = Callable[[List[Any], Any], Dict[str, List[Any]]]


def rollouts_of(rows: List[Row], client: Optional[Client] = None, **request: Any) -> Rollouts:
    """:param request: what each rollout is besides its instance, such as `agent` and `limits`"""
    row_of = {_key(row["prompt"]): row for row in rows}
    client = client or Client()

    def rollout_func(prompts: List[Any], trainer: Any) -> Dict[str, List[Any]]:
        """TRL repeats a prompt for each of its generations, so each prompt is one rollout."""
        common = {"sampling": _sampling(trainer.args), "tokens": "exact", **request}
        # `keep`: one token sequence for a rollout, also where the chat template would rewrite earlier turns.
        common["chat"] = {"history": "keep", **request.get("chat", {})}
        requests = [
            {"id": str(uuid.uuid4()), "instance": row_of[_key(prompt)], **common}
            for prompt in prompts
        ]
        done = {one.id: one for one in client.run_many(requests)}
        rollouts = [done[one["id"]] for one in requests]
        if all(one.reward is None for one in rollouts):
            raise RuntimeError(
                f"no rollout of this step has a reward: {rollouts[0].rollout['error']}"
            )
        parts = [_parts(one, trainer.processing_class.eos_token_id) for one in rollouts]
        return {name: [part[name] for part in parts] for name in parts[0]}

    return rollout_func


def reward_of_rolloutd(reward: List[Optional[float]], **_: Any) -> List[Optional[float]]:
    """The trainer's reward function: EVAL's verdicts. TRL leaves None out of a group's mean and of the loss."""
    return reward


def _parts(done: Done, eos: int) -> Dict[str, Any]:
    samples = done.trajectory.samples() if done.trajectory and done.reward is not None else []
    if not any(1 in sample.mask for sample in samples):
        # Broken, not wrong, or without a word of the model's: no data, for which TRL wants a token all the same.
        masked = {"logprobs": [0.0], "env_mask": [0], "reward": None}
        return {"prompt_ids": [eos], "completion_ids": [eos], **masked}
    [sample] = samples
    if sample.logprobs is None:
        raise RuntimeError(f"rollout {done.id}: the engine gives no log-probabilities")
    start = sample.prompt_length
    return {
        "prompt_ids": sample.ids[:start],
        "completion_ids": sample.ids[start:],
        "logprobs": sample.logprobs[start:],
        "env_mask": sample.mask[start:],
        "reward": done.reward,
    }


def _sampling(args: Any) -> Dict[str, Any]:
    """TRL's settings; 0 and None stand for what it does not use."""
    names = ("top_p", "top_k", "min_p", "repetition_penalty")
    used = {name: getattr(args, name) for name in names if getattr(args, name)}
    return {"temperature": args.temperature, "max_tokens": args.max_completion_length, **used}


def _key(prompt: Any) -> str:
    return json.dumps(prompt, sort_keys=True)
