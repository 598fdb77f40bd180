"""Steps of TRL's own trainer over the example's rollouts: python trl_steps.py SERVER MODEL_DIR

What it trains on is compared, number by number, with the trajectories as the service has them.
"""

import contextlib
import math
import os
import sys
import tempfile
from types import SimpleNamespace

os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"

import torch
import trl
from common import ROWS, Watched, tiny
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer
from trl_rollout import reward_of_rolloutd, rollouts_of

GENERATIONS = 4
CLIP = 3.0
server, model_dir = sys.argv[1:]
client = Watched(server)


class Checked(GRPOTrainer):
    """Looks at each batch before it is trained on."""

    def _generate_and_score_completions(self, inputs):
        batch = super()._generate_and_score_completions(inputs)
        assert len(client.given) == len(inputs) == len(ROWS) * GENERATIONS
        for at, done in enumerate(client.given):
            compare(batch, at, done)
        rewards = [None if one.reward is None else float(one.reward) for one in client.given]
        assert batch["advantages"].tolist() == advantages_of(rewards), batch["advantages"]
        return batch


def compare(batch, at, done):
    prompt, completion = batch["prompt_mask"][at].bool(), batch["completion_mask"][at].bool()
    mask = batch["tool_mask"][at][completion]
    if done.reward is None:
        assert mask.tolist() == [0] and batch["advantages"][at] == 0
        return
    [sample] = done.trajectory.samples()
    assert 0 in sample.mask[sample.prompt_length :] or len(done.trajectory.turns) == 1
    ids = torch.cat([batch["prompt_ids"][at][prompt], batch["completion_ids"][at][completion]])
    assert ids.tolist() == sample.ids
    assert mask.tolist() == sample.mask[sample.prompt_length :]
    if "sampling_per_token_logps" in batch:
        told = batch["sampling_per_token_logps"][at][completion]
        assert torch.equal(told, torch.tensor(sample.logprobs[sample.prompt_length :]))
    if "importance_sampling_ratio" in batch:
        ratio = torch.exp((batch["old_per_token_logps"][at][completion] - told) * mask).clamp(
            max=CLIP
        )
        assert torch.equal(batch["importance_sampling_ratio"][at][completion], ratio)


def advantages_of(rewards):
    """GRPO's, over those of a group that have a reward."""
    advantages = []
    for start in range(0, len(rewards), GENERATIONS):
        group = rewards[start : start + GENERATIONS]
        known = torch.tensor([reward for reward in group if reward is not None])
        for reward in group:
            centred = 0.0 if reward is None else reward - known.mean()
            advantages.append(float(centred / (known.std() + 1e-4)) if reward is not None else 0.0)
    return advantages


class Engine:
    """As much of TRL's vLLM as a trainer touches that generates elsewhere."""

    sync_weights = staticmethod(lambda: None)
    mode = "server"


def train(corrected):
    """:param corrected: with the importance sampling that TRL does where a vLLM server generates"""
    torch.manual_seed(0)
    model, tokenizer = tiny(model_dir)
    args = GRPOConfig(
        **{"output_dir": tempfile.mkdtemp(), "report_to": [], "save_strategy": "no"},
        **{"use_cpu": True, "bf16": False, "logging_steps": 1, "max_steps": 2},
        **{"num_generations": GENERATIONS, "per_device_train_batch_size": GENERATIONS * len(ROWS)},
        **{"learning_rate": 1e-3, "max_completion_length": 256},
        # By whole sequences, as TRL does by default, nothing would be left: the engine's log-probabilities are not
        # this model's, which is what the correction is there to find.
        **{"vllm_importance_sampling_mode": "token_truncate"},
        vllm_importance_sampling_clip_max=CLIP,
    )
    trainer = Checked(
        **{"model": model, "processing_class": tokenizer, "args": args},
        train_dataset=Dataset.from_list([{"prompt": row["prompt"]} for row in ROWS]),
        rollout_func=rollouts_of(ROWS, client),
        reward_funcs=reward_of_rolloutd,
    )
    if corrected:
        trainer.use_vllm, trainer.vllm_generation, trainer._last_loaded_step = True, Engine(), -1
    with contextlib.redirect_stdout(sys.stderr):
        trainer.train()
    steps = [SimpleNamespace(**one) for one in trainer.state.log_history if "loss" in one]
    assert len(steps) == 2
    for step in steps:
        # The all-wrong group and the broken one teach nothing; the first one does.
        assert math.isfinite(step.loss) and math.isfinite(step.grad_norm) and step.grad_norm > 0
        assert abs(step.reward - 0.25) < 1e-6, step.reward
    return [(round(step.loss, 4), round(step.grad_norm, 4)) for step in steps]


print(f"TRL {trl.__version__}: loss and gradient {train(False)}, corrected {train(True)}")
