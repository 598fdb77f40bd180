"""The rival of the API bench: FastAPI under uvicorn, one process, with the contract of /v1/rollouts held in memory.

Requests are checked and answered with as many fields as ours; ids are safe to repeat, and nothing is written anywhere.
Its first line of output is its port.
"""

import asyncio
import hashlib
import json
import socket
import uuid
from datetime import datetime, timezone
from typing import Any, Literal, Optional, Union

import uvicorn
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel, ConfigDict, Field


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Instance(BaseModel):
    model_config = ConfigDict(extra="allow")
    data_source: str = Field(min_length=1)


class Limits(Strict):
    init_ms: Optional[int] = Field(None, ge=1)
    run_ms: Optional[int] = Field(None, ge=1)
    eval_ms: Optional[int] = Field(None, ge=1)
    total_ms: Optional[int] = Field(None, ge=1)


class Sampling(Strict):
    temperature: Optional[float] = Field(None, ge=0, le=100)
    top_p: Optional[float] = Field(None, gt=0, le=1)
    max_tokens: Optional[int] = Field(None, ge=1)
    seed: Optional[int] = None


class Rollout(Strict):
    id: Optional[str] = Field(None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")
    task_kind: Optional[str] = None
    instance: Instance
    sampling: Optional[Sampling] = None
    tokens: Optional[Literal["exact", "text", "auto"]] = None
    limits: Optional[Limits] = None
    num_attempts: int = Field(3, ge=1, le=20)
    labels: dict[str, str] = {}
    priority: int = Field(0, ge=-100, le=100)


class Many(Strict):
    rollouts: list[Rollout] = Field(min_length=1, max_length=10_000)


app = FastAPI()
jobs: dict[str, dict[str, Any]] = {}
digests: dict[str, str] = {}
changed = asyncio.Condition()


def accept(request: Rollout) -> dict[str, Any]:
    body = request.model_dump(exclude_unset=True)
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    id = request.id or str(uuid.uuid4())
    if id in jobs:
        if digests[id] != digest:
            raise HTTPException(422, f'rollout "{id}" exists with another body')
        return {**jobs[id], "created": False}
    digests[id] = digest
    nothing = {"queued_ms": 0, "active_ms": 0}
    jobs[id] = {
        "id": id,
        "task_kind": request.task_kind or request.instance.data_source,
        "stage": "init",
        "state": "pending",
        "attempt": 1,
        "num_attempts": request.num_attempts,
        "failures": [],
        "ending": None,
        "reward": None,
        "verdict": None,
        "stop_reason": None,
        "final_message": None,
        "turns": None,
        "error": None,
        "backend_id": None,
        "rescore_of": None,
        "isolation": None,
        "timings": {"init": nothing, "run": nothing, "eval": nothing},
        "labels": request.labels,
        "priority": request.priority,
        "lease_until": None,
        "created_at": datetime.now(timezone.utc).isoformat(),
        "finished_at": None,
    }
    return {**jobs[id], "created": True}


@app.get("/healthz")
async def health():
    return {"status": "ok"}


@app.post("/v1/rollouts")
async def submit(request: Union[Many, Rollout]):
    if isinstance(request, Many):
        return {"rollouts": [accept(one) for one in request.rollouts]}
    return accept(request)


@app.get("/v1/rollouts/{id}")
async def get(id: str, wait_ms: int = 0):
    if id not in jobs:
        raise HTTPException(404, f'there is no rollout "{id}"')
    if wait_ms > 0:
        async with changed:
            over = changed.wait_for(lambda: jobs[id]["finished_at"] is not None)
            try:
                await asyncio.wait_for(over, wait_ms / 1000)
            except TimeoutError:
                pass
    return jobs[id]


listener = socket.socket()
listener.bind(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, backlog=16384))
server.run(sockets=[listener])
