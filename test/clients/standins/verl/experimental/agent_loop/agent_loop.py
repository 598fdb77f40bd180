"""As much of verl 0.9's module as an agent loop touches; verl itself needs torch and ray."""

from dataclasses import dataclass, field
from typing import Any, Optional

REGISTERED = {}


def register(name):
    def keep(cls):
        REGISTERED[name] = cls
        return cls

    return keep


class AgentLoopBase:
    def __init__(self, rollout_config):
        self.rollout_config = rollout_config


@dataclass
class AgentLoopMetrics:
    generate_sequences: float = 0.0
    tool_calls: float = 0.0
    compute_score: float = 0.0
    num_preempted: int = -1


@dataclass
class AgentLoopOutput:
    prompt_ids: list
    response_ids: list
    response_mask: list
    metrics: AgentLoopMetrics
    response_logprobs: Optional[list] = None
    reward_score: Optional[float] = None
    num_turns: int = 0
    extra_fields: dict = field(default_factory=dict)
    multi_modal_data: Any = None
