"""rolloutd as an agent loop of verl (run with verl 0.9.1, both trainers' workers: `scripts/try-trainers`).

    actor_rollout_ref.rollout.agent.agent_loop_config_path: agent.yaml
    # agent.yaml
    - name: rolloutd
      _target_: verl_agent_loop.RolloutdAgentLoop

and `agent_name: rolloutd` in the dataset, whose rows are the instances as they stand; the reward comes with the
rollout. Ray's workers need $ROLLOUTD_SERVER (and this folder and `rolloutd.py` on their PYTHONPATH). The service's
backends are verl's own rollout servers, by token ids: `LLMServerManager` prints their addresses, and each is
`rolloutd backends add http://ADDRESS/v1 --model NAME --model-dir MODEL`.
"""

import functools
from typing import Any, Dict

from rolloutd import AsyncClient, Done
from verl.experimental.agent_loop.agent_loop import (
    AgentLoopBase,
    AgentLoopMetrics,
    AgentLoopOutput,
    register,
)

# What verl adds to a row.
VERLS_OWN = {
    *("raw_prompt", "agent_name", "index", "priority", "tools_kwargs", "interaction_kwargs"),
    *("uid", "session_id", "global_steps", "dummy_tensor"),
}


@functools.lru_cache(maxsize=None)
def _client() -> AsyncClient:
    """One for the process: verl makes an agent loop for each rollout."""
    return AsyncClient()


@register("rolloutd")
class RolloutdAgentLoop(AgentLoopBase):
    """One `run` is one rollout; verl asks for each sample of a group by itself."""

    async def run(self, sampling_params: Dict[str, Any], **row: Any) -> AgentLoopOutput:
        known = ("temperature", "top_p", "top_k", "seed", "repetition_penalty")
        sampling = {name: sampling_params[name] for name in known if name in sampling_params}
        instance = {name: value for name, value in row.items() if name not in VERLS_OWN}
        config = self.rollout_config
        done = await _client().run(
            {
                "instance": {**instance, "prompt": row["raw_prompt"]},
                "sampling": sampling,
                "tokens": "exact",
                # One token sequence, also where the chat template would rewrite earlier turns.
                "chat": {"history": "keep"},
                # No turn begins whose tokens would be cut off.
                "agent": {"max_context_tokens": config.prompt_length + config.response_length},
            }
        )
        if done.reward is None:
            # Broken, not wrong. verl's trainer leaves it out of its group; the old one (v0) ends.
            raise RuntimeError(f"rollout {done.id}: {done.rollout['error']}")
        return _output(done, config.prompt_length, config.response_length)


def _output(done: Done, prompt_length: int, response_length: int) -> AgentLoopOutput:
    [sample] = done.trajectory.samples()
    # What does not fit into verl's prompt begins its response, masked.
    start = min(sample.prompt_length, prompt_length)
    end = start + response_length
    timings = done.rollout["timings"]
    return AgentLoopOutput(
        prompt_ids=sample.ids[:start],
        response_ids=sample.ids[start:end],
        response_mask=sample.mask[start:end],
        response_logprobs=None if sample.logprobs is None else sample.logprobs[start:end],
        reward_score=done.reward,
        num_turns=len(done.trajectory.messages),
        metrics=AgentLoopMetrics(
            generate_sequences=timings["run"]["active_ms"] / 1000,
            compute_score=timings["eval"]["active_ms"] / 1000,
        ),
        extra_fields={"rollout_id": done.id, "stop_reason": done.rollout["stop_reason"]},
    )
