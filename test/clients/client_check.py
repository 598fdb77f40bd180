"""Does with both clients what a trainer does, and prints what came of it as JSON."""

import asyncio
import json
import sys
import warnings

import rolloutd
from rolloutd import NothingToTrain

server, rows = sys.argv[1], json.loads(sys.argv[2])


def check_versions(trajectory, tokens, version):
    if version is None:
        try:
            trajectory.samples(versions=["another"])
        except ValueError as error:
            assert "no weight versions" in str(error)
            return
        raise AssertionError("a filter that can't match was silent")
    [same] = trajectory.samples(versions=[version])
    assert same.mask == tokens.mask
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        [other] = trajectory.samples(versions=["another"])
    assert sum(other.mask) == 0 and other.ids == tokens.ids
    assert [one.category for one in warned] == [NothingToTrain], warned


def sample(done):
    [tokens] = done.trajectory.samples()
    assert len(tokens.ids) == len(tokens.mask) == len(tokens.weight_versions)
    [version] = {version for version in tokens.weight_versions if version is not None} or {None}
    check_versions(done.trajectory, tokens, version)
    assert tokens.logprobs is None or len(tokens.logprobs) == len(tokens.ids)
    return {
        "ids": tokens.ids,
        "sampled": sum(tokens.mask),
        "prompt": tokens.prompt_length,
        "negative": sum(value < 0 for value in tokens.logprobs or []),
    }


def without_messages(trajectory, whole):
    """What a client gets that trains on ids alone: the same numbers, and no text."""
    assert trajectory.samples() == whole.samples() and trajectory.turns == whole.turns
    assert "messages" not in trajectory.raw and "tools" not in trajectory.raw
    try:
        return trajectory.messages
    except LookupError as error:
        return "messages=False" in str(error)


def requests(prefix):
    return [{"id": f"{prefix}-{index}", "instance": row} for index, row in enumerate(rows[:2])]


def blocking():
    with rolloutd.Client(server) as client:
        [one, *_] = rows
        done = client.run({"id": "sync-one", "instance": one})
        many = {done.id: done.reward for done in client.run_many(requests("sync"))}
        again = {done.id: done.reward for done in client.run_many(requests("sync"))}
        known = client.submit({"id": "sync-one", "instance": one})
        try:
            client.submit({"id": "sync-one", "instance": {"data_source": "nothing"}})
        except rolloutd.RolloutdError as error:
            refused = [error.status, error.code, error.field]
        with rolloutd.Client(server, messages=False) as light:
            group = client.run_group(group_request("group"), advantages="rloo")
            same = light.run_group(group_request("group"))
            pairs = [(light.trajectory(done.id), done.trajectory)]
            pairs += [(a.trajectory, b.trajectory) for a, b in zip(same.members, group.members)]
            listed = next(iter(light.trajectories(limit=1)))
            pairs.append((listed, client.trajectory(listed.raw["job_id"])))
        assert all(without_messages(*pair) for pair in pairs)
        return {
            "reward": done.reward,
            "sample": sample(done),
            "many": many,
            "again": again == many,
            "created": known["created"],
            "refused": refused,
            "finished": [rollout["id"] for _, rollout in zip(range(2), pages(client))],
            "backends": len(client.backends()),
            "trajectories": sorted(
                trajectory.raw["job_id"] for trajectory in client.trajectories(order="finished")
            ),
            "group": group_of(group),
            "batch": batch_of(client),
            "weights": weights_of(client),
        }


def group_request(group_id):
    return {"id": group_id, "instance": rows[0], "num_samples": 2}


def weights_of(client):
    with client.new_weights("v1"):
        pass
    try:
        with client.new_weights("never", lease_s=1800):
            raise KeyError("the push failed")
    except KeyError:
        pass
    # Half of them may have arrived, so nothing is sampled under a version that may be wrong.
    now = client.weights()
    resumed = client.resume_weights()
    return [now["version"], now["paused"], resumed["version"], resumed["paused"]]


def group_of(group):
    assert all(member.trajectory.has_tokens for member in group.members)
    advantages = [member.advantage for member in group.members]
    return [group.complete, group.informative, group.rewards, advantages]


def batch_request(batch_id):
    """Seeds differ within a group, and the simulated policy goes by them: one right, one wrong."""
    return {
        "id": batch_id,
        "instances": rows[2:3],
        "open": True,
        "num_samples": 2,
        "goal": {"groups": 2},
    }


def batch_of(client):
    batch = client.batch(batch_request("batch"))
    batch.append(rows[2:3], close=True)
    groups = list(batch.groups(advantages="grpo"))
    status = batch.status()
    return [status["state"], [sorted(group.rewards) for group in groups]]


async def async_batch_of(client):
    batch = await client.batch(batch_request("abatch"))
    await batch.append(rows[2:3], close=True)
    groups = [group async for group in batch.groups(advantages="grpo")]
    status = await batch.status()
    return [status["state"], [sorted(group.rewards) for group in groups]]


def pages(client):
    for _, rollout in client.finished():
        yield rollout


async def concurrent():
    async with rolloutd.AsyncClient(server) as client:
        labelled = [{**request, "labels": {"who": "me"}} for request in requests("async")]
        runs = [client.run(request) for request in labelled]
        done = await asyncio.gather(*runs)
        many = {}
        async for finished in client.run_many(requests("amany")):
            many[finished.id] = finished.reward
        held = asyncio.create_task(
            client.run({"id": "held", "instance": {"data_source": "echo", "run_ms": 600_000}})
        )
        while not (await client.list(state="active")):
            await asyncio.sleep(0.01)
        held.cancel()
        try:
            await held
        except asyncio.CancelledError:
            pass
        group = await client.run_group(group_request("agroup"), advantages="grpo")
        whole = [one.raw["job_id"] async for one in client.trajectories(label="who:me", limit=1)]
        assert sorted(whole) == ["async-0", "async-1"], whole
        async with rolloutd.AsyncClient(server, messages=False) as light:
            assert without_messages(await light.trajectory(done[0].id), done[0].trajectory)
        async with client.new_weights("v2"):
            pass
        return {
            "group": group_of(group),
            "batch": await async_batch_of(client),
            "weights": (await client.weights())["version"],
            "rewards": [one.reward for one in done],
            "samples": [sample(one) for one in done],
            "many": many,
            "held": (await client.wait("held", timeout_s=30))["state"],
        }


print(json.dumps({"sync": blocking(), "async": asyncio.run(concurrent())}))
