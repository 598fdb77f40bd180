"""rolloutd as an agent loop of verl (written for verl 0.9).

    actor_rollout_ref.rollout.agent.agent_loop_config_path: agent.yaml
    # agent.yaml
    - name: rolloutd
      _target_: verl_agent_loop.RolloutdAgentLoop

and `agent_name: rolloutd` in the dataset. A dataset row is the instance as it stands, with
`raw_prompt` as its `prompt`; the reward comes with the rollout. The service's backends have to be
verl's own rollout servers, by token ids.
"""

import os
from typing import Any, Dict

from rolloutd import AsyncClient, Done
from verl.experimental.agent_loop.agent_loop import (
    AgentLoopBase,
    AgentLoopMetrics,
    AgentLoopOutput,
    register,
)


@register("rolloutd")
class RolloutdAgentLoop(AgentLoopBase):
    """One `run` is one rollout; verl asks for each sample of a group by itself."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.client = AsyncClient(os.environ.get("ROLLOUTD_SERVER"))
        self.prompt_length = self.rollout_config.prompt_length
        self.response_length = self.rollout_config.response_length

    async def run(self, sampling_params: Dict[str, Any], **row: Any) -> AgentLoopOutput:
        known = ("temperature", "top_p", "top_k", "seed", "repetition_penalty")
        sampling = {name: sampling_params[name] for name in known if name in sampling_params}
        request = {
            "instance": _instance(row),
            "sampling": sampling,
            "tokens": "exact",
            "chat": {"history": "keep"},
        }
        done = await self.client.run(request)
        if done.reward is None:
            # Broken, not wrong: verl must not train on it as if it had failed the task.
            raise RuntimeError(f"rollout {done.id}: {done.rollout['error']}")
        return self._output(done)

    def _output(self, done: Done) -> AgentLoopOutput:
        [sample] = done.trajectory.samples()
        start, end = sample.prompt_length, sample.prompt_length + self.response_length
        timings = done.rollout["timings"]
        return AgentLoopOutput(
            prompt_ids=sample.ids[:start][-self.prompt_length :],
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


def _instance(row: Dict[str, Any]) -> Dict[str, Any]:
    verls_own = ("raw_prompt", "agent_name", "index", "priority", "tools_kwargs")
    instance = {name: value for name, value in row.items() if name not in verls_own}
    return {**instance, "prompt": [dict(message) for message in row["raw_prompt"]]}
