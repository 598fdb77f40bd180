"""What a trainer's life does to a client: forks, signals, threads, event loops, connections that were closed."""

import array
import ast
import asyncio
import http.server
import json
import os
import pickle
import resource
import signal
import sys
import threading
import time

import rolloutd

server = sys.argv[1]
# Nobody listens there: requests go to the service, whatever else goes by a proxy.
os.environ.update(http_proxy="http://127.0.0.1:9", HTTP_PROXY="http://127.0.0.1:9")


def echo(**row):
    return {"instance": {"data_source": "echo", **row}}


def rewards(client, reward, count=20):
    return {client.run(echo(reward=reward)).reward for _ in range(count)}


def in_child(check):
    """Whether `check` holds in a process that was forked here."""
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(0 if check() else 1)
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(2)
    return lambda: os.waitpid(pid, 0)[1] == 0


def forked():
    client = rolloutd.Client(server, patience_s=0)
    client.status()
    child = in_child(lambda: rewards(client, 0.25) == {0.25})
    own = rewards(client, 0.75) == {0.75}
    return own and child()


def forked_from_a_loop():
    client = rolloutd.AsyncClient(server, patience_s=0)

    async def some(reward):
        return {(await client.run(echo(reward=reward))).reward for _ in range(20)} == {reward}

    def anew():
        asyncio._set_running_loop(None)
        return asyncio.run(some(0.25))

    async def both():
        await client.status()
        child = in_child(anew)
        own = await some(0.75)
        return own and child() and await some(0.5)

    return asyncio.run(both())


def one_loop_after_another():
    client = rolloutd.AsyncClient(server, patience_s=0)
    return [asyncio.run(client.run(echo())).reward for _ in range(2)]


def pickled():
    client = pickle.loads(pickle.dumps(rolloutd.Client(server, messages=False)))
    concurrent = pickle.loads(pickle.dumps(rolloutd.AsyncClient(server)))
    return client.run(echo()).reward == asyncio.run(concurrent.run(echo())).reward == 1


def interrupted():
    """Ctrl-C while rollouts are waited for: they are cancelled, and the client is as good as before."""
    client = rolloutd.Client(server)

    def interrupt(rollout_id):
        # Who has submitted it waits for it, and is no longer before that.
        while not [one for one in client.list(state="active") if one["id"] == rollout_id]:
            time.sleep(0.01)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    def state_after(rollout_id, wait):
        threading.Thread(target=interrupt, args=[rollout_id]).start()
        try:
            wait({"id": rollout_id, **echo(run_ms=600_000)})
        except KeyboardInterrupt:
            return client.wait(rollout_id, timeout_s=30)["state"]

    one = state_after("held", client.run)
    many = state_after("held-too", lambda request: list(client.run_many([request])))
    return [one, many, rewards(client, 0.5, 1) == {0.5}]


def refused_half_way():
    """What was submitted before the service refused the rest does not run on unseen."""
    client = rolloutd.Client(server)
    rolloutd._BATCH_BYTES = 1
    requests = [{"id": "first", **echo(run_ms=600_000)}, {"instance": {"data_source": "none"}}]
    try:
        list(client.run_many(requests))
    except rolloutd.RolloutdError as error:
        return [error.code, client.wait("first", timeout_s=30)["state"]]


def cancelled_group():
    async def held():
        async with rolloutd.AsyncClient(server) as client:
            request = {"id": "held-group", "num_samples": 2, **echo(run_ms=600_000)}
            task = asyncio.ensure_future(client.run_group(request))
            while not (await client.list(state="active")):
                await asyncio.sleep(0.01)
            task.cancel()
            await asyncio.wait([task])
            return [task.cancelled(), (await client.call("GET", "/v1/groups/held-group"))["state"]]

    return asyncio.run(held())


def cancelled_at_once():
    """However early it comes, nothing is left running."""

    async def held(client, at):
        request = {"id": f"early-{at}", **echo(run_ms=600_000)}
        task = asyncio.ensure_future(client.run(request))
        for _ in range(at):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        return (await client.wait(request["id"], timeout_s=30))["state"]

    async def some():
        async with rolloutd.AsyncClient(server) as client:
            return {await held(client, at) for at in range(1, 12)}

    return sorted(asyncio.run(some()))


def many_at_once():
    """More rollouts are waited for than the process may have connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (320, hard))

    held = {"id": "many-held", "labels": {"who": "held"}, **echo(run_ms=600_000)}

    async def all_of_them():
        async with rolloutd.AsyncClient(server, patience_s=0) as client:
            runs = [client.run(echo(reward=at % 2, run_ms=200)) for at in range(400)]
            tasks = [asyncio.ensure_future(run) for run in [client.run(held), *runs]]
            while not await client.list(label="who:held", state="active"):
                await asyncio.sleep(0.05)
            # It does not wait for its turn behind all those that wait.
            tasks[0].cancel()
            await asyncio.wait(tasks[:1])
            state = (await client.get("many-held", wait_s=10))["state"]
            return [state, *[done.reward for done in await asyncio.gather(*tasks[1:])]]

    try:
        state, *rewards = asyncio.run(all_of_them())
        return state == "cancelled" and rewards == [at % 2 for at in range(400)]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def left_early():
    client = rolloutd.Client(server)
    for _ in client.run_many({"id": f"left-{at}", **echo()} for at in range(4)):
        break
    return {client.wait(f"left-{at}", timeout_s=30)["state"] for at in range(4)} == {"succeeded"}


def submits():
    client = rolloutd.Client(server)
    rolloutd._BATCH_BYTES = 1000
    ids = [f"part-{at}" for at in range(30)]
    numbers = array.array("d", [0.5])
    rows = [{"id": one, **echo(numbers=numbers, text="x" * 100)} for one in ids]
    whole = [rollout["id"] for rollout in client.submit_many(rows)] == ids
    refused = []
    for row in ({"reward": float("nan")}, {"reward": object()}):
        try:
            client.submit(echo(**row))
        except (TypeError, ValueError) as error:
            refused.append(type(error).__name__)
    return [whole, refused]


class Hasty(http.server.BaseHTTPRequestHandler):
    """Closes a connection on which nothing comes for a moment, as a service does while its trainer trains."""

    protocol_version = "HTTP/1.1"
    timeout = 0.2
    open = 0

    def setup(self):
        super().setup()
        Hasty.open += 1

    def finish(self):
        super().finish()
        Hasty.open -= 1

    def do_GET(self):
        ready.wait()
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


ready = threading.Barrier(10)


def closed_meanwhile():
    """Ten connections were used and are closed now: the next request does not try one after the other."""
    hasty = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hasty)
    threading.Thread(target=hasty.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{hasty.server_port}"
    client = rolloutd.Client(address, patience_s=0)
    concurrent = rolloutd.AsyncClient(address, patience_s=0)

    def until_closed():
        while Hasty.open > 0:
            time.sleep(0.01)

    def blocking():
        threads = [threading.Thread(target=client.status) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    async def gathered():
        for _ in range(2):
            await asyncio.gather(*[concurrent.status() for _ in range(10)])
            # The loop does not turn meanwhile, so it has not heard of the ends.
            until_closed()

    for _ in range(2):
        blocking()
        until_closed()
    asyncio.run(gathered())
    hasty.shutdown()
    return True


def syntax():
    with open(rolloutd.__file__, encoding="utf-8") as file:
        ast.parse(file.read(), feature_version=(3, 8))
    return True


checks = [
    *(forked, forked_from_a_loop, one_loop_after_another, pickled, interrupted, cancelled_group),
    refused_half_way,
    *(cancelled_at_once, many_at_once, left_early, submits, closed_meanwhile, syntax),
]
print(json.dumps({check.__name__: check() for check in checks}))
