"""Batches of verl's own workers, both trainers', over the example's agent loop: python verl_batches.py SERVER MODEL_DIR

What verl would train on is compared, number by number, with the trajectories as the service has them.
"""

import asyncio
import os
import sys
import tempfile
import time

server, model_dir = sys.argv[1:]
os.environ["ROLLOUTD_SERVER"] = server

import numpy
import pandas
import ray
import transfer_queue
import verl
from common import ROWS, tiny
from hydra import compose, initialize_config_dir
from rolloutd import Client
from verl.experimental.agent_loop.agent_loop import AgentLoopWorker
from verl.protocol import DataProto
from verl.trainer.ppo.v1 import AgentLoopManagerTQ
from verl.utils import tensordict_utils
from verl.utils.dataset.rl_dataset import RLHFDataset, collate_fn

# Too short for the longest, so that a prompt goes on in its response, and a response is cut.
PROMPT_LENGTH, RESPONSE_LENGTH = 1400, 240
GENERATIONS = 2
folder = tempfile.mkdtemp()
client = Client(server)


def configured(tokenizer):
    """As `python -m verl.trainer.main_ppo` reads it."""
    config_dir = os.path.join(os.path.dirname(verl.__file__), "trainer/config")
    rollout = "actor_rollout_ref.rollout"
    with initialize_config_dir(config_dir, version_base=None):
        config = compose(
            "ppo_trainer",
            [
                f"data.train_files={folder}/rows.parquet",
                f"data.max_prompt_length={PROMPT_LENGTH}",
                f"data.max_response_length={RESPONSE_LENGTH}",
                f"actor_rollout_ref.model.path={folder}/model",
                f"{rollout}.name=vllm",
                f"{rollout}.n={GENERATIONS}",
                f"{rollout}.calculate_log_probs=True",
                f"{rollout}.agent.num_workers=1",
                f"{rollout}.agent.agent_loop_config_path={folder}/agent.yaml",
            ],
        )
    config.transfer_queue.enable = True
    dataset = RLHFDataset([f"{folder}/rows.parquet"], tokenizer, config.data)
    return config, dataset


def prepare():
    model, tokenizer = tiny(model_dir)
    model.save_pretrained(f"{folder}/model")
    tokenizer.save_pretrained(f"{folder}/model")
    rows = [
        {**row, "agent_name": "rolloutd", "extra_info": {"index": at}}
        for at, row in enumerate(ROWS)
    ]
    pandas.DataFrame(rows).to_parquet(f"{folder}/rows.parquet")
    with open(f"{folder}/agent.yaml", "w") as file:
        file.write("- name: rolloutd\n  _target_: verl_agent_loop.RolloutdAgentLoop\n")
    return configured(tokenizer)


def compare(rollout_id, ids, response, mask, logprobs, score):
    """:param ids: prompt and response; the last three are the response's"""
    rollout, [sample] = client.get(rollout_id), client.trajectory(rollout_id).samples()
    assert ids == sample.ids[: len(ids)] and len(response) <= RESPONSE_LENGTH
    start = len(ids) - len(response)
    assert start == min(sample.prompt_length, PROMPT_LENGTH)
    assert mask == sample.mask[start : len(ids)] and 1 in mask
    told = numpy.array(sample.logprobs[start : len(ids)], dtype=numpy.float32)
    assert numpy.array_equal(numpy.array(logprobs, dtype=numpy.float32), told)
    assert score == rollout["reward"] is not None


def compare_padded(batch, extra):
    """Of the worker whose batches are padded, as the first trainer takes them."""
    for at, rollout_id in enumerate(extra["rollout_id"]):
        prompt, response = (
            batch["attention_mask"][at].bool().split([PROMPT_LENGTH, RESPONSE_LENGTH])
        )
        both = batch["input_ids"][at][batch["attention_mask"][at].bool()]
        answer = batch["responses"][at][response]
        assert both.tolist() == batch["prompts"][at][prompt].tolist() + answer.tolist()
        parts = [
            batch[name][at][response].tolist() for name in ("response_mask", "rollout_log_probs")
        ]
        compare(
            rollout_id, both.tolist(), answer.tolist(), *parts, float(batch["rm_scores"][at].sum())
        )


def first_trainer(config, dataset):
    rows = [dataset[at] for at in (0, 0, 1)]
    batch = DataProto.from_single_dict(collate_fn(rows))
    batch.non_tensor_batch["uid"] = numpy.array(["a", "a", "b"], dtype=object)
    batch.non_tensor_batch["priority"] = numpy.arange(3)
    worker = AgentLoopWorker(config, None)
    made = asyncio.run(worker.generate_sequences(batch))
    compare_padded(made.batch, made.non_tensor_batch)
    broken = DataProto.from_single_dict(collate_fn([dataset[2]]))
    try:
        asyncio.run(worker.generate_sequences(broken))
        raise AssertionError("a broken rollout was given to the trainer")
    except RuntimeError as error:
        assert "no scripted policy" in str(error)
    return made.batch["rm_scores"].sum(-1).tolist()


def second_trainer(config, dataset):
    paths = [os.path.abspath(path) for path in os.environ["PYTHONPATH"].split(":")]
    variables = {"ROLLOUTD_SERVER": server, "PYTHONPATH": ":".join(paths)}
    # What it counts as processors, many of which its parts take for themselves.
    ray.init(num_cpus=32, include_dashboard=False, runtime_env={"env_vars": variables})
    transfer_queue.init(config.transfer_queue)
    manager = AgentLoopManagerTQ.create(config=config, llm_client=None)
    rows = collate_fn([dataset[at] for at in range(3)])
    uids = [f"row-{at}" for at in range(3)]
    batch = tensordict_utils.get_tensordict({**rows, "uid": numpy.array(uids, dtype=object)})
    tensordict_utils.assign_non_tensor_data(batch, "global_steps", 1)
    pending = {"is_prompt": True, "status": "pending", "global_steps": 1}
    transfer_queue.kv_batch_put(keys=uids, partition_id="train", tags=[pending] * 3)
    manager.generate_sequences(batch)
    tags = transfer_queue.kv_list("train")["train"]
    while any(tags[uid]["status"] in ("pending", "running") for uid in uids):
        time.sleep(0.2)
        tags = transfer_queue.kv_list("train")["train"]
    # The group of the broken rollouts fails, and has no data.
    assert [tags[uid]["status"] for uid in uids] == ["finished", "finished", "failure"]
    keys = sorted(key for key in tags if key not in uids)
    assert keys == [f"row-{row}_{sample}_0" for row in range(2) for sample in range(GENERATIONS)]
    made = transfer_queue.kv_batch_get(keys=keys, partition_id="train")
    for at, extra in enumerate(made["extra_fields"]):
        names = ("input_ids", "responses", "response_mask", "rollout_log_probs", "rm_scores")
        parts = [made[name].unbind()[at].tolist() for name in names]
        compare(extra["rollout_id"], *parts[:4], sum(parts[4]))
    transfer_queue.close()
    ray.shutdown()
    return [sum(one.tolist()) for one in made["rm_scores"].unbind()]


prepared = prepare()
print(f"verl {verl.__version__}: rewards {first_trainer(*prepared)}", flush=True)
print(f"verl {verl.__version__}, V1 trainer: rewards {second_trainer(*prepared)}", flush=True)
