"""NeMo Gym's resources servers and agents as they are, with a scripted model, and the same rows through a service of ours:
gym_agents.py ROLLOUTD IMAGE APPTAINER WORK_FOLDER

The rewards of its simple and gymnasium agents have to be those of `/run`.
"""

import asyncio
import concurrent.futures
import importlib
import importlib.metadata
import json
import os
import pathlib
import socket
import subprocess
import sys
import threading
import urllib.request
from http.cookies import SimpleCookie
from types import SimpleNamespace
from unittest.mock import MagicMock

import aiohttp
import nemo_gym
import uvicorn
from nemo_gym.base_resources_server import SimpleResourcesServer
from nemo_gym.config_types import ModelServerRef, ResourcesServerRef
from nemo_gym.server_utils import ServerClient

ROOT = pathlib.Path(nemo_gym.__file__).parents[1]
SERVERS = ["workplace_assistant", "example_multi_step", "example_session_state_mgmt"]
SERVERS += ["example_multi_turn_gymnasium"]


def served(name):
    """The address of the package's server of that name, which runs until the end."""
    app = importlib.import_module(f"resources_servers.{name}.app")
    kinds = [kind for kind in vars(app).values() if isinstance(kind, type)]
    kind = [k for k in kinds if issubclass(k, SimpleResourcesServer) and k.__module__ == app.__name__][-1]
    config = kind.model_fields["config"].annotation
    fields = {"host": "127.0.0.1", "port": 1, "entrypoint": "app.py", "name": name, "domain": "other"}
    server = kind(config=config(**fields), server_client=MagicMock(spec=ServerClient))
    listening = socket.create_server(("127.0.0.1", 0))
    run = uvicorn.Server(uvicorn.Config(server.setup_webserver(), log_level="warning")).run
    threading.Thread(target=run, kwargs={"sockets": [listening]}, daemon=True).start()
    return f"http://127.0.0.1:{listening.getsockname()[1]}"


def call(name, arguments):
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


def say(text):
    return {"content": text}


def parsed(value):
    return json.loads(value) if isinstance(value, str) else value


def workplace(row):
    right = [call(one["name"], parsed(one["arguments"])) for one in parsed(row["ground_truth"])]
    return [
        [*right, say("Done.")],
        [say("No.")],
        [*right[:1], say("Half.")],
        [call(right[0]["tool_calls"][0]["name"], "{bad"), *right, say("Done.")],
        [*right, *right, say("Twice.")],
        [*[call("email_search_emails", {"query": "x"})] * 25, *right, say("Done.")],
    ]


def multi_step(row):
    values = row["expected_synonym_values"]
    ask = [call("get_synonym_value", {"synonym": word}) for word in row["expected_synonyms"]]
    answers = [values, values[::-1]]
    given = [[*ask, call("extract_synonym_values", {"synonym_values": one}), say("Done.")] for one in answers]
    return [*given, [say("?")], [call("get_synonym_value", {"wrong": 1}), *given[0]]]


def counter(row):
    missing = row["expected_count"] - row["initial_count"]

    def add(count):
        return call("increment_counter", {"count": count})

    both = [*add(1)["tool_calls"], *add(missing - 1)["tool_calls"]]
    return [
        [add(missing), call("get_counter_value", {}), say("Done.")],
        [*[add(1)] * 30, add(missing - 30), say("Done.")],
        [add(missing + 1), say("Done.")],
        [call("increment_counter", "nope"), add(missing), say("Done.")],
        [{"content": "Both.", "tool_calls": both}, say("Done.")],
    ]


def multi_turn(row):
    before = len(row["follow_ups"])
    answer = say(row["expected_answer"])
    return [[*[say("x")] * before, answer], [*[answer] * before, say("wrong")]]


def cases():
    """Rows with what the model says to each, told apart by a word before the first user message."""
    made = []
    for name, scripts in zip(SERVERS, [workplace, multi_step, counter, multi_turn]):
        path = ROOT / "resources_servers" / name / "data" / "example.jsonl"
        for line in path.read_text(encoding="utf-8").splitlines():
            for turns in scripts(json.loads(line)):
                row = json.loads(line)
                word = f"case-{len(made):03d}:"
                user = next(m for m in row["responses_create_params"]["input"] if m["role"] == "user")
                user["content"] = f"{word} {user['content']}"
                agent = name if name.endswith("gymnasium") else f"{name}_simple"
                row["agent_ref"] = {"type": "responses_api_agents", "name": f"{agent}_agent"}
                made.append({"word": word, "server": name, "row": row, "turns": turns})
    return made


class Reply:
    def __init__(self, body, status=200, cookies=None):
        self.body, self.status, self.cookies = body, status, cookies or SimpleCookie()
        self.ok, self.content = status < 400, self

    async def read(self):
        return self.body

    def raise_for_status(self):
        if not self.ok:
            raise RuntimeError(f"HTTP {self.status}: {self.body[:200]}")


class Jar:
    """Takes the cookies of an agent's answer to itself."""

    def __init__(self):
        self.cookies = SimpleCookie()

    def set_cookie(self, name, value):
        self.cookies[name] = getattr(value, "value", value)


class Network:
    """Stands for Gym's client: the model is scripted, the agent calls itself, resources servers are asked."""

    def __init__(self, case, urls, session):
        self.turns, self.urls, self.session, self.agent = iter(case["turns"]), urls, session, None

    async def post(self, server_name, url_path, json=None, cookies=None, **_):
        if server_name == "model":
            return self.said(next(self.turns))
        pairs = {name: getattr(value, "value", value) for name, value in (cookies or {}).items()}
        if server_name == "agent":
            jar, request = Jar(), SimpleNamespace(cookies=pairs, path_params={})
            answer = await self.agent.responses(request, jar, json)
            return Reply(answer.model_dump_json().encode(), cookies=jar.cookies)
        body = json.model_dump(mode="json") if hasattr(json, "model_dump") else json
        headers = {"cookie": "; ".join(f"{name}={value}" for name, value in pairs.items())} if pairs else {}
        async with self.session.post(self.urls[server_name] + url_path, json=body, headers=headers) as reply:
            return Reply(await reply.read(), reply.status, reply.cookies)

    def said(self, turn):
        text = [{"type": "output_text", "text": turn.get("content", ""), "annotations": []}]
        message = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": text}
        output = [] if "content" not in turn else [message]
        for one in turn.get("tool_calls", []):
            arguments = one["arguments"] if isinstance(one["arguments"], str) else json.dumps(one["arguments"])
            names = {"name": one["name"], "call_id": f"c{id(one)}"}
            output.append({"type": "function_call", "arguments": arguments, **names})
        response = {"id": "r", "object": "response", "created_at": 1, "model": "m", "output": output}
        response.update(parallel_tool_calls=False, tools=[], tool_choice="auto")
        return Reply(json.dumps(response).encode())


async def theirs(case, urls):
    kind = "Gymnasium" if case["server"].endswith("gymnasium") else "Simple"
    app = importlib.import_module(f"responses_api_agents.{kind.lower()}_agent.app")
    agent_type = getattr(app, f"{kind}Agent")
    config = agent_type.model_fields["config"].annotation(
        **{"host": "h", "port": 1, "entrypoint": "app.py", "name": "agent"},
        resources_server=ResourcesServerRef(type="resources_servers", name=case["server"]),
        model_server=ModelServerRef(type="responses_api_models", name="model"),
    )
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
        network = Network(case, urls, session)
        network.agent = agent_type.model_construct(config=config, server_client=network)
        body = getattr(app, f"{kind}AgentRunRequest").model_validate(case["row"])
        answer = await network.agent.run(SimpleNamespace(cookies={}, path_params={}), body)
        return answer.reward


def ours(case, url):
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(f"{url}/run", json.dumps(case["row"]).encode(), headers)
    with urllib.request.urlopen(request, timeout=300) as reply:
        answer = json.load(reply)
    return answer.get("error") or answer["reward"]


def begin(*command):
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    return child, child.stdout.readline().strip()


def main(rolloutd, image, apptainer, work):
    urls = {name: served(name) for name in SERVERS}
    made = cases()
    policy = os.path.join(work, "gym-policy.jsonl")
    with open(policy, "w", encoding="utf-8") as file:
        for case in made:
            file.write(json.dumps({"match": case["word"], "variants": [case["turns"]]}) + "\n")
    model = ["--model-dir", os.path.join(work, "gym-model")]
    engine, backend = begin(rolloutd, "simulate", "--port", "0", "--policy", policy, *model)
    # The name of an agent without its ending is that of its server.
    named = ",".join(f"{name.removesuffix('_gymnasium')}={url}" for name, url in urls.items())
    settings = ["--image", image, "--apptainer", apptainer, "--gym-servers", named, *model]
    data = os.path.join(work, "gym-data")
    flags = ["--port", "0", "--json", "--data-dir", data, "--backend", backend, *settings]
    service, line = begin(rolloutd, "serve", *flags)
    try:
        url = json.loads(line)["url"]
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            mine = list(pool.map(lambda case: ours(case, url), made))
    finally:
        for child in (service, engine):
            child.terminate()
            child.wait()
    wrong = []
    for case, reward in zip(made, mine):
        wanted = asyncio.run(theirs(case, urls))
        if reward != wanted:
            wrong.append(f"{case['server']} {case['word']} {reward}, by Gym's agent {wanted}")
    assert not wrong, "\n".join(wrong)
    version = importlib.metadata.version("nemo-gym")
    right = sum(reward == 1 for reward in mine)
    print(f"NeMo Gym {version}: {len(made)} rewards of {len(SERVERS)} servers as by its agents, {right} of them 1")


if __name__ == "__main__":
    main(*sys.argv[1:])
