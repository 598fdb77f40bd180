"""The Python client of rolloutd: one file, standard library only, Python 3.8 and later.

    from rolloutd import Client

    client = Client()  # $ROLLOUTD_SERVER, or http://127.0.0.1:8006
    for done in client.run_many({"instance": row} for row in rows):
        if done.reward is None:
            continue  # broken, not wrong: done.rollout["error"] says what
        train(done.trajectory.samples(), done.reward)

`AsyncClient` has the same methods for asyncio. Addresses are `http://HOST:PORT` or the path of the service's
Unix socket. Every submit carries an id, so a request that is sent again is the same rollout: the client does
that by itself while the service restarts, for as long as `patience_s`. Threads may share a client, and processes
that are forked from its own, or get it pickled, may go on using it.
"""

# What JSON holds is `Any`, also where the service says more of it.
# mypy: no-warn-return-any

from __future__ import annotations

import array
import asyncio
import contextlib
import functools
import http.client
import json
import logging
import os
import random
import socket
import ssl
import sys
import time
import urllib.parse
import uuid
import warnings
from dataclasses import dataclass, replace
from typing import Any, AsyncIterator, Dict, FrozenSet, Generator, Iterable, Iterator, List
from typing import Optional, Set, Tuple, TypeVar, Union

try:
    import msgpack  # type: ignore
except ImportError:
    msgpack = None

__all__ = [
    "AsyncBatch",
    "AsyncClient",
    "Batch",
    "Client",
    "Done",
    "Group",
    "Member",
    "NothingToTrain",
    "RolloutdError",
    "Sample",
    "Trajectory",
    "Unreachable",
]

Json = Dict[str, Any]
T = TypeVar("T")

_LOG = logging.getLogger("rolloutd")
# How often a client that waits for its service says so.
_NOTE_S = 15.0
# One long poll. A service that was stopped hard is noticed after so long.
_POLL_S = 60.0
# Rollouts of one submit, and about how much of them; the service takes 64 MiB unless it is told otherwise.
_BATCH = 1000
_BATCH_BYTES = 16 * 2**20
# Connections of an asyncio client: for long polls, which are short ones while many wait, and for all else.
_POLLS = 192
_REQUESTS = 64
_SHORT_POLL_S = 1.0
# How long cancelling a rollout may hold up who is cancelled itself.
_GIVE_UP_S = 5.0
_FINAL = ("succeeded", "failed", "cancelled")


class RolloutdError(Exception):
    """What the service refused, or how a request failed.

    `code` is stable and meant for programs; `field` names what is wrong, `mend` says what to do about it, and
    `details` where it happened: the line of a task module, the tool call that hung.
    """

    def __init__(self, body: Json, status: int = 0) -> None:
        self.status = status
        self.code: str = body.get("code", "internal")
        self.message: str = body.get("message", "")
        self.boundary: Optional[str] = body.get("boundary")
        self.retryable: bool = bool(body.get("retryable", False))
        self.field: Optional[str] = body.get("field")
        self.mend: Optional[str] = body.get("mend")
        self.details: Json = body.get("details") or {}
        super().__init__(f"{self.message} ({self.mend})" if self.mend else self.message)


class Unreachable(RolloutdError):
    """No service answered within `patience_s`."""


class NothingToTrain(UserWarning):
    """A filter has left no token of a trajectory to train on."""


@dataclass(frozen=True)
class Sample:
    """One token sequence to train on.

    Shapes: `ids`, `mask` and `logprobs` all have length n. `mask` is 1 exactly where the model sampled;
    `logprobs` is 0.0 elsewhere, and None where the engine gave none. `weight_versions` has one entry per id:
    the version that sampled it, None where it was not sampled or the engine does not say.
    """

    ids: List[int]
    mask: List[int]
    logprobs: Optional[List[float]]
    weight_versions: List[Optional[str]]

    @property
    def prompt_length(self) -> int:
        """How many ids come before the first sampled one."""
        return self.mask.index(1) if 1 in self.mask else len(self.ids)


class Trajectory:
    """What happened in a rollout; `raw` is the whole record as the service gave it."""

    def __init__(self, raw: Json) -> None:
        self.raw = raw

    @property
    def messages(self) -> List[Json]:
        """:raises LookupError: from a client with `messages=False`."""
        if "messages" not in self.raw:
            raise LookupError("the client was made with messages=False")
        return self.raw["messages"]

    @property
    def turns(self) -> List[Json]:
        return self.raw["turns"]

    @property
    def logprobs_mode(self) -> Optional[str]:
        """Of which distribution the log-probabilities are: "raw", "temperature" or "processed".

        None where the engine did not show it, or where turns differ.
        """
        modes = {turn.get("logprobs_mode") for turn in self.turns}
        return modes.pop() if len(modes) == 1 else None

    @property
    def has_tokens(self) -> bool:
        """False in text mode, where only the engine knows the ids."""
        return self.raw["token_ids"] == "exact"

    def samples(self, versions: Union[None, str, int, Iterable[Any]] = None) -> List[Sample]:
        """One per token sequence; a chat template that rewrites history makes several.

        :param versions: one version or several, as text or numbers: what weights of others sampled gets mask 0. A
            rollout that was paused between two batches has tokens of several. Where that is every token, a
            `NothingToTrain` is warned of.
        :raises TypeError: for what is no version, and so could equal none
        :raises ValueError: where no version is given, or the trajectory has none
        """
        samples = [_sample(segment, self.turns) for segment in self.raw["segments"]]
        if versions is None:
            return samples
        wanted = _versions(versions)
        masked = [_masked(sample, wanted) for sample in samples]
        if any(1 in sample.mask for sample in samples) and not any(1 in one.mask for one in masked):
            _note_nothing(samples, wanted)
        return masked


def _masked(sample: Sample, versions: FrozenSet[str]) -> Sample:
    pairs = zip(sample.mask, sample.weight_versions)
    mask = [one if version is not None and version in versions else 0 for one, version in pairs]
    return Sample(sample.ids, mask, sample.logprobs, sample.weight_versions)


def _note_nothing(samples: List[Sample], wanted: FrozenSet[str]) -> None:
    found = {version for sample in samples for version in sample.weight_versions}
    found.discard(None)
    if not found:
        raise ValueError(
            "the trajectory has no weight versions: its engine tells none, and none was announced"
            " (announce_weights, or samples() without versions)"
        )
    text = f"versions={sorted(wanted)} masks every token: they are of {sorted(map(str, found))}"
    warnings.warn(NothingToTrain(text), stacklevel=3)


def _versions(versions: Any) -> FrozenSet[str]:
    versions = _plain_number(versions)
    if isinstance(versions, (str, int, float, bytes, bytearray)):
        return frozenset([_version(versions)])
    if not isinstance(versions, Iterable):
        raise TypeError(f"versions are text or numbers, one or several, not {versions!r:.80}")
    wanted = frozenset(_version(version) for version in versions)
    if not wanted:
        raise ValueError("versions is empty, which masks every token: leave it out to keep all")
    return wanted


def _version(value: Any) -> str:
    """As the service has it: 3, 3.0, "3" and NumPy's 3 are the version "3".

    :raises TypeError: for what is neither text nor a number
    """
    value = _plain_number(value)
    if isinstance(value, str):
        if value == "":
            raise ValueError("a weight version is text with at least one character")
        return str(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"a weight version is text or a number, not {value!r:.80}")
    if not abs(value) < 2**53:
        raise ValueError(f"the weight version {value!r:.80} is no number that JSON keeps: use text")
    return str(value)


def _plain_number(value: Any) -> Any:
    """A scalar of NumPy's or torch's as Python's own; an array as a list."""
    return value.tolist() if hasattr(value, "tolist") else value


def _sample(segment: Json, turns: List[Json]) -> Sample:
    ids = _numbers(segment["ids"])
    given = segment["logprobs"]
    sampled_logprobs = None if given is None else _numbers(given)
    mask = [0] * len(ids)
    logprobs = None if sampled_logprobs is None else [0.0] * len(ids)
    versions: List[Optional[str]] = [None] * len(ids)
    used = 0
    # How many ids of each turn came before: a resumed turn has several spans.
    before: Dict[int, int] = {}
    for span in segment["spans"]:
        start, end = span["start"], span["end"]
        if span["kind"] != "sampled":
            continue
        mask[start:end] = [1] * (end - start)
        if logprobs is not None and sampled_logprobs is not None:
            logprobs[start:end] = sampled_logprobs[used : used + end - start]
            used += end - start
        turn = span.get("turn")
        if turn is None:
            continue
        offset = before.get(turn, 0)
        before[turn] = offset + end - start
        _mark_versions(versions, start, end, offset, turns[turn])
    return Sample(ids, mask, logprobs, versions)


def _mark_versions(
    versions: List[Optional[str]], start: int, end: int, offset: int, turn: Json
) -> None:
    for position in range(start, end):
        versions[position] = turn.get("weight_version")
    for span in turn.get("weight_spans") or []:
        first = max(start, start + span["start"] - offset)
        last = min(end, start + span["end"] - offset)
        for position in range(first, last):
            versions[position] = span["version"]


def _numbers(value: Any) -> List[Any]:
    """A list as JSON has it, or packed numbers as msgpack does."""
    if isinstance(value, list):
        return value
    dtype, data = value["dtype"], value["data"]
    return _unpacked({"<u4": "I", "<f4": "f", "<f8": "d"}[dtype], data).tolist()


def _unpacked(typecode: str, data: bytes) -> Any:
    numbers = array.array(typecode)
    numbers.frombytes(data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


@dataclass(frozen=True)
class Done:
    """A finished rollout. `trajectory` is None where it ended before its first turn."""

    rollout: Json
    trajectory: Optional[Trajectory]

    @property
    def id(self) -> str:
        return self.rollout["id"]

    @property
    def reward(self) -> Optional[float]:
        """None when there is no verdict: never a reward for the model."""
        return self.rollout["reward"]


@dataclass(frozen=True)
class Member:
    """The rollout that stands for one sample of a group.

    `reward` is what EVAL gave, `shaped_reward` that with the penalty for its length; both are None where it
    does not count, and `advantage` too.
    """

    sample: int
    reward: Optional[float]
    shaped_reward: Optional[float]
    advantage: Optional[float]
    rollout: Optional[Json]
    trajectory: Optional[Trajectory]


class Group:
    """The rollouts of one instance, compared with each other; `raw` is the whole view of the service."""

    def __init__(self, raw: Json) -> None:
        self.raw = raw

    @property
    def id(self) -> str:
        return self.raw["id"]

    @property
    def instance(self) -> Json:
        return self.raw["instance"]

    @property
    def complete(self) -> bool:
        """False where it was cancelled, pruned, or could not be completed: `raw["error"]` says why."""
        return self.raw["state"] == "complete"

    @property
    def informative(self) -> Optional[bool]:
        return self.raw["informative"]

    @property
    def rewards(self) -> List[float]:
        return self.raw["rewards"]

    @property
    def members(self) -> List[Member]:
        return [
            Member(
                member["sample"],
                member["reward"],
                member["shaped_reward"],
                member["advantage"],
                member["rollout"],
                Trajectory(member["trajectory"]) if member.get("trajectory") else None,
            )
            for member in self.raw["members"]
        ]


# ---------------------------------------------------------------------------------------------------------
# What is asked, apart from how. An operation is a generator of requests that is given their answers, so that
# the blocking and the asyncio client do the same thing.


@dataclass
class _Request:
    method: str
    path: str
    body: Optional[bytes] = None
    accept: str = "application/json"
    # The answer may take so much longer than usual.
    wait_s: float = 0.0
    # The service may hold its answer back for so long, or for less if the client asks for that: `wait_ms`.
    poll_s: float = 0.0
    # The answer holds trajectories, of which the client may want less than all.
    has_trajectories: bool = False


@dataclass
class _Response:
    status: int
    headers: Dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


_Operation = Generator[_Request, _Response, T]


def _query(**values: Any) -> str:
    given = {name: _word(value) for name, value in values.items() if value is not None}
    return f"?{urllib.parse.urlencode(given)}" if given else ""


def _word(value: Any) -> str:
    """A parameter of a query. :raises TypeError: for what the service could take for something else"""
    value = _plain_number(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    raise TypeError(f"a filter is text, a number or a bool, not {value!r:.80}")


def _quoted(part: str) -> str:
    return urllib.parse.quote(part, safe="")


def _with_id(request: Json) -> Json:
    if not isinstance(request, dict):
        raise TypeError(f"a request is a dict with an instance, not {request!r:.80}")
    given = request.get("id")
    if given is None:
        return {**request, "id": str(uuid.uuid4())}
    if not isinstance(given, (str, uuid.UUID)):
        raise TypeError(f"an id is text, not {given!r:.80}")
    return {**request, "id": str(given)}


def _encoded(value: Json) -> bytes:
    """:raises ValueError: for numbers that JSON has not (NaN, as pandas has it where a table has no value)"""
    return json.dumps(value, allow_nan=False, default=_plain).encode()


def _plain(value: Any) -> Any:
    """Rows come from NumPy, pandas and PyArrow as well, whose scalars and arrays JSON does not know."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} can't be sent as JSON: {value!r:.80}")


def _call(
    method: str, path: str, body: Optional[Json] = None, wait_s: float = 0.0
) -> _Operation[Any]:
    encoded = None if body is None else _encoded(body)
    response = yield _Request(method, path, encoded, wait_s=wait_s)
    return response.json()


def _poll(path: str, poll_s: float = _POLL_S, has_trajectories: bool = False) -> _Operation[Any]:
    response = yield _Request("GET", path, poll_s=poll_s, has_trajectories=has_trajectories)
    return response.json()


def _submit_many(requests: Iterable[Json]) -> _Operation[List[Json]]:
    rollouts: List[Json] = []
    for body in _submit_bodies(requests):
        response = yield _Request("POST", "/v1/rollouts", body)
        rollouts += response.json()["rollouts"]
    return rollouts


def _submit_bodies(requests: Iterable[Json]) -> Iterator[bytes]:
    parts: List[bytes] = []
    size = 0
    for request in requests:
        part = _encoded(_with_id(request))
        if parts and (len(parts) == _BATCH or size + len(part) > _BATCH_BYTES):
            yield b'{"rollouts":[%s]}' % b",".join(parts)
            parts, size = [], 0
        parts.append(part)
        size += len(part)
    if parts:
        yield b'{"rollouts":[%s]}' % b",".join(parts)


def _get(rollout_id: str, wait_s: float) -> _Operation[Json]:
    until = time.monotonic() + wait_s
    while True:
        poll_s = max(0.0, min(_POLL_S, until - time.monotonic()))
        rollout = yield from _poll(f"/v1/rollouts/{_quoted(rollout_id)}", poll_s)
        if rollout["state"] in _FINAL or time.monotonic() >= until:
            return rollout


def _wait(rollout_id: str, timeout_s: Optional[float]) -> _Operation[Json]:
    rollout = yield from _get(rollout_id, float("inf") if timeout_s is None else timeout_s)
    if rollout["state"] not in _FINAL:
        raise TimeoutError(f"rollout {rollout_id} is still in {rollout['stage']}")
    return rollout


def _trajectory(rollout_id: str) -> _Operation[Trajectory]:
    path = f"/v1/rollouts/{_quoted(rollout_id)}/trajectory"
    packed = "application/msgpack, application/json;q=0.5"
    accept = "application/json" if msgpack is None else packed
    response = yield _Request("GET", path, accept=accept, has_trajectories=True)
    if msgpack is not None and "msgpack" in response.headers.get("content-type", ""):
        return Trajectory(msgpack.unpackb(response.body, strict_map_key=False))
    return Trajectory(response.json())


def _trajectory_or_none(rollout_id: str) -> _Operation[Optional[Trajectory]]:
    try:
        return (yield from _trajectory(rollout_id))
    except RolloutdError as error:
        if error.code == "not_found":
            return None
        raise


def _run(request: Json, timeout_s: Optional[float]) -> _Operation[Done]:
    [rollout] = yield from _submit_many([request])
    finished = yield from _wait(rollout["id"], timeout_s)
    return Done(finished, (yield from _trajectory_or_none(finished["id"])))


def _give_up(request: Json) -> _Operation[None]:
    """Cancels what may be on its way still: it is submitted once more, so that it is there to be cancelled."""
    [rollout] = yield from _submit_many([request])
    yield from _call("DELETE", f"/v1/rollouts/{_quoted(rollout['id'])}")


def _run_group(body: Json, advantages: Optional[str]) -> _Operation[Group]:
    yield from _call("POST", "/v1/groups", body)
    query = _query(advantages=advantages, trajectories="true")
    path = f"/v1/groups/{_quoted(body['id'])}{query}"
    while True:
        group = yield from _poll(path, has_trajectories=True)
        if group["finished_at"] is not None:
            return Group(group)


def _give_up_group(body: Json) -> _Operation[None]:
    yield from _call("POST", "/v1/groups", body)
    yield from _call("DELETE", f"/v1/groups/{_quoted(body['id'])}")


def _groups_page(
    batch_id: str, after: int, advantages: Optional[str]
) -> _Operation[Tuple[List[Group], int, bool]]:
    query = _query(after=after, advantages=advantages, trajectories="true")
    path = f"/v1/batches/{_quoted(batch_id)}/groups{query}"
    page = yield from _poll(path, has_trajectories=True)
    return [Group(group) for group in page["groups"]], page["next"], page["over"]


def _append(batch_id: str, instances: List[Json], at: int, close: bool) -> _Operation[Json]:
    body = {"instances": instances, "at": at, "close": close}
    return (yield from _call("POST", f"/v1/batches/{_quoted(batch_id)}/instances", body))


def _change_weights(route: str, mode: str, wait_s: float, **fields: Any) -> _Operation[Json]:
    body = {"mode": mode, "wait_ms": int(wait_s * 1000), **fields}
    return (yield from _call("POST", f"/v1/weights{route}", body, wait_s=wait_s))


def _lease(lease_s: Optional[float]) -> Json:
    return {} if lease_s is None else {"lease_ms": int(lease_s * 1000)}


def _cursor() -> _Operation[int]:
    return (yield from _call("GET", "/v1/status"))["finished_cursor"]


def _trajectories_page(after: int, filters: Json) -> _Operation[Tuple[List[Trajectory], int, bool]]:
    query = _query(**{"limit": 50, **filters, "after": after})
    path = f"/v1/trajectories{query}"
    response = yield _Request("GET", path, accept="application/jsonl", has_trajectories=True)
    page = [Trajectory(json.loads(line)) for line in response.body.splitlines()]
    headers = response.headers
    return page, int(headers["rolloutd-next"]), headers["rolloutd-more"] == "true"


def _finished_page(after: int) -> _Operation[Tuple[List[Json], int]]:
    page = yield from _poll(f"/v1/rollouts{_query(order='finished', after=after, limit=500)}")
    return page["rollouts"], page["next"]


def _cancel_all(ids: Iterable[str]) -> _Operation[None]:
    for rollout_id in ids:
        # Some were not submitted yet.
        with contextlib.suppress(RolloutdError):
            yield from _call("DELETE", f"/v1/rollouts/{_quoted(rollout_id)}")


class _Awaited:
    """The rollouts of one submit whose ends have not been seen yet."""

    def __init__(self) -> None:
        self.ids: Set[str] = set()

    def named(self, requests: Iterable[Json]) -> Iterator[Json]:
        for request in requests:
            whole = _with_id(request)
            if whole["id"] in self.ids:
                raise ValueError(f"two requests have the id {whole['id']!r}: they are one rollout")
            self.ids.add(whole["id"])
            yield whole

    def over(self, rollouts: List[Json]) -> Iterator[Json]:
        """Those among `rollouts` that are over, each once."""
        for rollout in rollouts:
            if rollout["state"] in _FINAL and rollout["id"] in self.ids:
                self.ids.discard(rollout["id"])
                yield rollout


# ---------------------------------------------------------------------------------------------------------
# How it is asked.


@dataclass(frozen=True)
class _Address:
    """Where the service is: a Unix socket, or a host and port with or without TLS."""

    socket_path: Optional[str]
    host: str
    port: int
    tls: Optional[ssl.SSLContext]
    prefix: str

    @staticmethod
    def parse(text: str) -> "_Address":
        if text.startswith("unix:"):
            return _Address(text[len("unix:") :], "localhost", 0, None, "")
        if text.startswith(("/", ".")):
            return _Address(text, "localhost", 0, None, "")
        url = urllib.parse.urlsplit(text)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise ValueError(f"not an address: {text!r} (http://HOST:PORT, or a socket's path)")
        tls = ssl.create_default_context() if url.scheme == "https" else None
        port = url.port or (443 if tls else 80)
        return _Address(None, url.hostname, port, tls, url.path.rstrip("/"))

    def __str__(self) -> str:
        return self.socket_path or f"{self.host}:{self.port}"


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class _Settings:
    """What both clients are made of."""

    def __init__(
        self,
        server: Optional[str],
        token: Optional[str],
        timeout_s: float,
        patience_s: float,
        messages: bool,
    ) -> None:
        self.messages = messages
        self.server = server or os.environ.get("ROLLOUTD_SERVER") or "http://127.0.0.1:8006"
        self.address = _Address.parse(self.server)
        self.token = token if token is not None else os.environ.get("ROLLOUTD_TOKEN")
        self.timeout_s = timeout_s
        self.patience_s = patience_s
        self._quiet_until = 0.0

    def note(self, reason: object) -> None:
        """Why requests are tried again: a trainer that waits in silence looks like one that hangs."""
        now = time.monotonic()
        if now < self._quiet_until:
            return
        self._quiet_until = now + _NOTE_S
        _LOG.warning("%s; trying for %g s", reason, self.patience_s)

    def arguments(self) -> Json:
        """Those of a client like this one."""
        return {
            "server": self.server,
            "token": self.token,
            "timeout_s": self.timeout_s,
            "patience_s": self.patience_s,
            "messages": self.messages,
        }

    def target(self, request: _Request) -> str:
        query: Json = {}
        if request.poll_s > 0:
            query["wait_ms"] = int(request.poll_s * 1000)
        if request.has_trajectories and not self.messages:
            query["messages"] = "false"
        path = self.address.prefix + request.path
        return (
            f"{path}{'&' if '?' in path else '?'}{urllib.parse.urlencode(query)}" if query else path
        )

    def limit_s(self, request: _Request) -> float:
        return self.timeout_s + request.wait_s + request.poll_s

    def headers(self, request: _Request) -> Dict[str, str]:
        headers = {"Accept": request.accept}
        if request.body is not None:
            headers["Content-Type"] = "application/json"
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        return headers

    def attempts(self, patience_s: Optional[float] = None) -> Iterator[float]:
        """Pauses between attempts, with jitter, until patience ends."""
        until = time.monotonic() + (self.patience_s if patience_s is None else patience_s)
        pause = 0.1
        while True:
            yield pause * (0.5 + random.random() / 2)
            if time.monotonic() >= until:
                return
            pause = min(pause * 2, 5.0)


def _retry_after(response: _Response) -> Optional[float]:
    """Seconds until the same request may do better; None where it won't."""
    if response.status not in (429, 502, 503, 504, 507):
        return None
    try:
        return float(response.headers.get("retry-after", "0"))
    except ValueError:
        return 0.0


def _why(
    settings: _Settings, response: Optional[_Response], problem: Optional[BaseException]
) -> Exception:
    """Why a request has to be tried again."""
    return _unreachable(settings, problem) if response is None else _refusal(response)


def _refusal(response: _Response) -> RolloutdError:
    try:
        body = response.json()["error"]
    except (ValueError, KeyError, TypeError):
        body = {"code": "internal", "message": response.body[:500].decode("utf-8", "replace")}
    return RolloutdError(body, response.status)


class Client:
    """A blocking client, with as many connections as threads use it at once.

    `timeout_s` bounds one request, its waiting for a rollout aside; `patience_s` is how long a request is
    tried again while the service can't be reached or is too busy. With `messages=False` trajectories come without
    their texts (`messages` and `tools`), which are a third of them, for who trains on `samples()` alone.
    """

    def __init__(
        self,
        server: Optional[str] = None,
        *,
        token: Optional[str] = None,
        timeout_s: float = 60.0,
        patience_s: float = 60.0,
        messages: bool = True,
    ) -> None:
        self._settings = _Settings(server, token, timeout_s, patience_s, messages)
        self._idle = _Idle()

    def __reduce__(self) -> Any:
        return functools.partial(Client, **self._settings.arguments()), ()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections that nobody uses; a later request opens one again."""
        self._idle.close()

    def call(self, method: str, path: str, body: Optional[Json] = None) -> Any:
        """Any route of the service, for what has no method here."""
        return self._do(_call(method, path, body))

    def submit(self, request: Json) -> Json:
        """One rollout: `{"instance": row, "sampling": {...}, ...}`. Returns it as the service sees it."""
        return self.submit_many([request])[0]

    def submit_many(self, requests: Iterable[Json]) -> List[Json]:
        """Rollouts in the order given, each with its `id`."""
        return self._do(_submit_many(requests))

    def get(self, rollout_id: str, wait_s: float = 0.0) -> Json:
        """With `wait_s` it answers when the rollout is over, or after that time."""
        return self._do(_get(rollout_id, wait_s))

    def wait(self, rollout_id: str, timeout_s: Optional[float] = None) -> Json:
        """:raises TimeoutError: when it is not over by then; it goes on."""
        return self._do(_wait(rollout_id, timeout_s))

    def trajectory(self, rollout_id: str) -> Trajectory:
        """:raises RolloutdError: `not_found` where it ended before its first turn, or is not so far."""
        return self._do(_trajectory(rollout_id))

    def trajectories(self, after: int = 0, **filters: Any) -> Iterator[Trajectory]:
        """Those of many rollouts, by the filters of `list`; `raw["job_id"]` says whose each is."""
        more = True
        while more:
            page, after, more = self._do(_trajectories_page(after, filters))
            yield from page

    def run(self, request: Json, timeout_s: Optional[float] = None) -> Done:
        """Submits one rollout and waits for its end. Ctrl-C here cancels it there.

        :raises TimeoutError: when it is not over by then; it goes on.
        """
        request = _with_id(request)
        return self._do_or_give_up(_run(request, timeout_s), _give_up(request))

    def run_many(self, requests: Iterable[Json]) -> Iterator[Done]:
        """Submits all, and gives each as it finishes: the first one need not be the first to come back.

        Ctrl-C while it waits, and an error, cancel what is unfinished. Who leaves the loop early leaves the others
        running: `cancel_where(label=...)` ends them.
        """
        awaited = _Awaited()
        try:
            after = self._do(_cursor())
            page = self.submit_many(awaited.named(requests))
            # One that was finished before, under the same id, is not in the log behind the cursor.
            while True:
                for rollout in awaited.over(page):
                    yield self._done(rollout)
                if not awaited.ids:
                    return
                page, after = self._do(_finished_page(after))
        except (KeyboardInterrupt, RolloutdError):
            with contextlib.suppress(RolloutdError):
                self._do(_cancel_all(awaited.ids), patience_s=0.0)
            raise

    def finished(self, after: int = 0) -> Iterator[Tuple[int, Json]]:
        """Every rollout that finishes, in order and for ever, with the cursor to go on from after it."""
        while True:
            page, after = self._do(_finished_page(after))
            for rollout in page:
                yield rollout.get("finished_seq", after), rollout

    def list(self, **filters: Any) -> List[Json]:
        """Rollouts by the filters of `GET /v1/rollouts`, one page."""
        return self._do(_call("GET", f"/v1/rollouts{_query(**filters)}"))["rollouts"]

    def cancel(self, rollout_id: str) -> Json:
        """It is over once its state says so: `wait` for it."""
        return self._do(_call("DELETE", f"/v1/rollouts/{_quoted(rollout_id)}"))

    def backends(self) -> List[Json]:
        return self._do(_call("GET", "/v1/backends"))["backends"]

    def add_backend(self, url: str, **options: Any) -> Json:
        """`options`: `model`, `model_dir`, `api_key_env`, `engine`."""
        return self._do(_call("POST", "/v1/backends", {"url": url, **options}))

    def remove_backend(self, backend_id: str) -> Json:
        return self._do(_call("DELETE", f"/v1/backends/{_quoted(backend_id)}"))

    def status(self) -> Json:
        return self._do(_call("GET", "/v1/status"))

    def cancel_where(self, **filters: Any) -> Json:
        """All unfinished rollouts of a label (`label="step:7"`), also by `state` and `kind`."""
        return self._do(_call("DELETE", f"/v1/rollouts{_query(**filters)}"))

    def renew(self, **what: Any) -> Json:
        """Renews leases, by `ids` or by `labels`."""
        return self._do(_call("POST", "/v1/rollouts/renew", what))

    def run_group(self, request: Json, advantages: Optional[str] = None) -> Group:
        """`request` is a rollout's with `num_samples`. `advantages`: `grpo`, `rloo` or `dapo`. Ctrl-C cancels it."""
        request = _with_id(request)
        return self._do_or_give_up(_run_group(request, advantages), _give_up_group(request))

    def batch(self, request: Json) -> "Batch":
        """Begins a batch: instances, a `goal` of informative groups, and what each rollout is."""
        raw = self._do(_call("POST", "/v1/batches", _with_id(request)))
        return Batch(self, raw, len(request.get("instances", [])))

    def weights(self) -> Json:
        """The version that new calls are stamped with, and whether they wait."""
        return self._do(_call("GET", "/v1/weights"))

    def announce_weights(self, version: Any, mode: str = "drain", wait_s: float = 600.0) -> Json:
        """The engines have new weights. Calls that run end first (`drain`), are resumed (`abort`) or stay (`keep`)."""
        return self._do(_change_weights("", mode, wait_s, version=_version(version)))

    @contextlib.contextmanager
    def new_weights(
        self,
        version: Any,
        mode: str = "drain",
        wait_s: float = 600.0,
        lease_s: Optional[float] = None,
    ) -> Iterator[None]:
        """Calls wait while the block updates the engines, and go on under `version` after it.

        Where it raises they go on waiting, since the engines may have half of the weights: enter it again, or say
        `resume_weights` where the old ones still stand. After `lease_s` (an hour) they go on without a version.
        """
        version = _version(version)
        self._do(_change_weights("/pause", mode, wait_s, **_lease(lease_s)))
        yield
        self._do(_change_weights("", mode, wait_s, version=_version(version)))

    def resume_weights(self) -> Json:
        """Calls go on with the weights that were announced last."""
        return self._do(_call("POST", "/v1/weights/resume"))

    def instances(self, **filters: Any) -> List[Json]:
        """How hard each instance was so far, over all batches."""
        return self._do(_call("GET", f"/v1/instances{_query(**filters)}"))["instances"]

    def drain_backend(self, backend_id: str, move: bool = False) -> Json:
        """No new rollouts go there; with `move` those that are there go on elsewhere."""
        query = _query(trajectories="move" if move else None)
        return self._do(_call("POST", f"/v1/backends/{_quoted(backend_id)}/drain{query}"))

    def _done(self, rollout: Json) -> Done:
        return Done(rollout, self._do(_trajectory_or_none(rollout["id"])))

    def _do(self, operation: _Operation[T], patience_s: Optional[float] = None) -> T:
        try:
            request = next(operation)
            while True:
                response = self._exchange(request, patience_s)
                if response.status < 400:
                    request = operation.send(response)
                else:
                    request = operation.throw(_refusal(response))
        except StopIteration as stop:
            return stop.value

    def _do_or_give_up(self, operation: _Operation[T], giving_up: _Operation[None]) -> T:
        try:
            return self._do(operation)
        except KeyboardInterrupt:
            with contextlib.suppress(RolloutdError):
                self._do(giving_up, patience_s=0.0)
            raise

    def _exchange(self, request: _Request, patience_s: Optional[float]) -> _Response:
        problem: Optional[BaseException] = None
        response: Optional[_Response] = None
        for tried, pause in enumerate(self._settings.attempts(patience_s)):
            try:
                response = self._once(request)
                again = _retry_after(response)
                if again is None:
                    return response
                pause = max(pause, again)
            except (OSError, http.client.HTTPException) as error:
                problem = error
                response = None
            if tried > 0:
                self._settings.note(_why(self._settings, response, problem))
            time.sleep(pause)
        if response is not None:
            return response
        raise _unreachable(self._settings, problem) from problem

    def _once(self, request: _Request) -> _Response:
        used = self._idle.take()
        if used is not None:
            try:
                return self._over(used, request)
            except ConnectionError:
                # The service closes connections that nobody has used for a while, so the others are closed as well.
                self.close()
        timeout = self._settings.limit_s(request)
        return self._over(_connect(self._settings.address, timeout), request)

    def _over(self, connection: http.client.HTTPConnection, request: _Request) -> _Response:
        settings = self._settings
        connection.timeout = settings.limit_s(request)
        if connection.sock is not None:
            connection.sock.settimeout(connection.timeout)
        try:
            path = settings.target(request)
            connection.request(request.method, path, request.body, settings.headers(request))
            reply = connection.getresponse()
            headers = {name.lower(): value for name, value in reply.getheaders()}
            response = _Response(reply.status, headers, reply.read())
        except BaseException:
            # Also at Ctrl-C: what comes over it would be taken for the answer to the next request.
            connection.close()
            raise
        if not reply.will_close:
            self._idle.keep(connection)
        return response


class _Idle:
    """A blocking client's connections that no thread uses, for the process that opened them."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._connections: List[http.client.HTTPConnection] = []

    def take(self) -> Optional[http.client.HTTPConnection]:
        if self._process != os.getpid():
            # This process was forked, and its parent is talking over them.
            self._process, self._connections = os.getpid(), []
        with contextlib.suppress(IndexError):
            return self._connections.pop()
        return None

    def keep(self, connection: http.client.HTTPConnection) -> None:
        self._connections.append(connection)

    def close(self) -> None:
        while True:
            connection = self.take()
            if connection is None:
                return
            connection.close()


def _connect(address: _Address, timeout: float) -> http.client.HTTPConnection:
    if address.socket_path is not None:
        return _UnixConnection(address.socket_path, timeout)
    if address.tls is not None:
        return http.client.HTTPSConnection(
            address.host, address.port, timeout=timeout, context=address.tls
        )
    return http.client.HTTPConnection(address.host, address.port, timeout=timeout)


def _unreachable(settings: _Settings, problem: Optional[BaseException]) -> Unreachable:
    body = {
        "code": "server_unreachable",
        "message": f"rolloutd does not answer at {settings.address}: {problem}",
        "boundary": "service",
        "retryable": True,
        "mend": "start it with `rolloutd serve`, or name another address",
    }
    return Unreachable(body)


class AsyncClient:
    """The same for asyncio: each method of `Client` as a coroutine, each iterator as an async one.

    Any number of coroutines may wait at once: they share some connections, and when many wait, they poll in turns.
    """

    def __init__(
        self,
        server: Optional[str] = None,
        *,
        token: Optional[str] = None,
        timeout_s: float = 60.0,
        patience_s: float = 60.0,
        messages: bool = True,
    ) -> None:
        self._settings = _Settings(server, token, timeout_s, patience_s, messages)
        self._streams: Optional[_Streams] = None

    def __reduce__(self) -> Any:
        return functools.partial(AsyncClient, **self._settings.arguments()), ()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()

    async def close(self) -> None:
        self._here().close()

    async def call(self, method: str, path: str, body: Optional[Json] = None) -> Any:
        return await self._do(_call(method, path, body))

    async def submit(self, request: Json) -> Json:
        return (await self.submit_many([request]))[0]

    async def submit_many(self, requests: Iterable[Json]) -> List[Json]:
        return await self._do(_submit_many(requests))

    async def get(self, rollout_id: str, wait_s: float = 0.0) -> Json:
        return await self._do(_get(rollout_id, wait_s))

    async def wait(self, rollout_id: str, timeout_s: Optional[float] = None) -> Json:
        return await self._do(_wait(rollout_id, timeout_s))

    async def trajectory(self, rollout_id: str) -> Trajectory:
        return await self._do(_trajectory(rollout_id))

    async def trajectories(self, after: int = 0, **filters: Any) -> AsyncIterator[Trajectory]:
        more = True
        while more:
            page, after, more = await self._do(_trajectories_page(after, filters))
            for trajectory in page:
                yield trajectory

    async def run(self, request: Json, timeout_s: Optional[float] = None) -> Done:
        """A task that is cancelled here cancels its rollout there."""
        request = _with_id(request)
        return await self._do_or_give_up(_run(request, timeout_s), _give_up(request))

    async def run_many(self, requests: Iterable[Json]) -> AsyncIterator[Done]:
        awaited = _Awaited()
        try:
            after = await self._do(_cursor())
            page = await self.submit_many(awaited.named(requests))
            while True:
                for rollout in awaited.over(page):
                    yield await self._done(rollout)
                if not awaited.ids:
                    return
                page, after = await self._do(_finished_page(after))
        except (asyncio.CancelledError, RolloutdError):
            with contextlib.suppress(RolloutdError, asyncio.TimeoutError):
                await asyncio.wait_for(self._do(_cancel_all(awaited.ids)), _GIVE_UP_S)
            raise

    async def finished(self, after: int = 0) -> AsyncIterator[Tuple[int, Json]]:
        while True:
            page, after = await self._do(_finished_page(after))
            for rollout in page:
                yield rollout.get("finished_seq", after), rollout

    async def list(self, **filters: Any) -> List[Json]:
        return (await self._do(_call("GET", f"/v1/rollouts{_query(**filters)}")))["rollouts"]

    async def cancel(self, rollout_id: str) -> Json:
        return await self._do(_call("DELETE", f"/v1/rollouts/{_quoted(rollout_id)}"))

    async def backends(self) -> List[Json]:
        return (await self._do(_call("GET", "/v1/backends")))["backends"]

    async def add_backend(self, url: str, **options: Any) -> Json:
        return await self._do(_call("POST", "/v1/backends", {"url": url, **options}))

    async def remove_backend(self, backend_id: str) -> Json:
        return await self._do(_call("DELETE", f"/v1/backends/{_quoted(backend_id)}"))

    async def status(self) -> Json:
        return await self._do(_call("GET", "/v1/status"))

    async def cancel_where(self, **filters: Any) -> Json:
        return await self._do(_call("DELETE", f"/v1/rollouts{_query(**filters)}"))

    async def renew(self, **what: Any) -> Json:
        return await self._do(_call("POST", "/v1/rollouts/renew", what))

    async def run_group(self, request: Json, advantages: Optional[str] = None) -> Group:
        """A task that is cancelled here cancels its group there."""
        request = _with_id(request)
        operation = _run_group(request, advantages)
        return await self._do_or_give_up(operation, _give_up_group(request))

    async def batch(self, request: Json) -> "AsyncBatch":
        raw = await self._do(_call("POST", "/v1/batches", _with_id(request)))
        return AsyncBatch(self, raw, len(request.get("instances", [])))

    async def weights(self) -> Json:
        return await self._do(_call("GET", "/v1/weights"))

    async def announce_weights(
        self, version: Any, mode: str = "drain", wait_s: float = 600.0
    ) -> Json:
        return await self._do(_change_weights("", mode, wait_s, version=_version(version)))

    @contextlib.asynccontextmanager
    async def new_weights(
        self,
        version: Any,
        mode: str = "drain",
        wait_s: float = 600.0,
        lease_s: Optional[float] = None,
    ) -> AsyncIterator[None]:
        """As `Client.new_weights`."""
        version = _version(version)
        await self._do(_change_weights("/pause", mode, wait_s, **_lease(lease_s)))
        yield
        await self._do(_change_weights("", mode, wait_s, version=_version(version)))

    async def resume_weights(self) -> Json:
        return await self._do(_call("POST", "/v1/weights/resume"))

    async def instances(self, **filters: Any) -> List[Json]:
        return (await self._do(_call("GET", f"/v1/instances{_query(**filters)}")))["instances"]

    async def drain_backend(self, backend_id: str, move: bool = False) -> Json:
        query = _query(trajectories="move" if move else None)
        return await self._do(_call("POST", f"/v1/backends/{_quoted(backend_id)}/drain{query}"))

    async def _done(self, rollout: Json) -> Done:
        return Done(rollout, await self._do(_trajectory_or_none(rollout["id"])))

    async def _do_or_give_up(self, operation: _Operation[T], giving_up: _Operation[None]) -> T:
        try:
            return await self._do(operation)
        except asyncio.CancelledError:
            with contextlib.suppress(RolloutdError, asyncio.TimeoutError):
                await asyncio.wait_for(self._do(giving_up), _GIVE_UP_S)
            raise

    async def _do(self, operation: _Operation[T]) -> T:
        try:
            request = next(operation)
            while True:
                response = await self._exchange(request)
                if response.status < 400:
                    request = operation.send(response)
                else:
                    request = operation.throw(_refusal(response))
        except StopIteration as stop:
            return stop.value

    async def _exchange(self, request: _Request) -> _Response:
        problem: Optional[BaseException] = None
        response: Optional[_Response] = None
        for tried, pause in enumerate(self._settings.attempts()):
            try:
                response = await self._once(request)
                again = _retry_after(response)
                if again is None:
                    return response
                pause = max(pause, again)
            except (OSError, EOFError, ValueError, asyncio.TimeoutError) as error:
                problem = error
                response = None
            if tried > 0:
                self._settings.note(_why(self._settings, response, problem))
            await asyncio.sleep(pause)
        if response is not None:
            return response
        raise _unreachable(self._settings, problem) from problem

    async def _once(self, request: _Request) -> _Response:
        streams = self._here()
        limit_s = self._settings.limit_s(request)
        if request.poll_s == 0:
            async with streams.requests:
                return await asyncio.wait_for(self._over(streams, request), limit_s)
        async with streams.polls:
            # Half of them are for those that come and go, so that nobody waits for long behind others.
            if streams.polling >= _POLLS / 2:
                request = replace(request, poll_s=min(request.poll_s, _SHORT_POLL_S))
            streams.polling += 1
            try:
                return await asyncio.wait_for(self._over(streams, request), limit_s)
            finally:
                streams.polling -= 1

    async def _over(self, streams: "_Streams", request: _Request) -> _Response:
        if streams.idle:
            try:
                return await streams.exchange(streams.idle.pop(), self._settings, request)
            except (ConnectionError, EOFError):
                # The service closes connections that nobody has used for a while, so the others are closed as well.
                streams.close()
        stream = await _Stream.open(self._settings.address)
        return await streams.exchange(stream, self._settings, request)

    def _here(self) -> "_Streams":
        owner = (os.getpid(), asyncio.get_running_loop())
        if self._streams is None or self._streams.owner != owner:
            if self._streams is not None and self._streams.owner[0] != owner[0]:
                # This process was forked. To free them would take them from its parent's event loop.
                _PARENTS.append(self._streams)
            self._streams = _Streams(owner)
        return self._streams


_PARENTS: List["_Streams"] = []


class _Streams:
    """An asyncio client's connections, for the event loop that opened them."""

    def __init__(self, owner: Tuple[int, asyncio.AbstractEventLoop]) -> None:
        self.owner = owner
        self.polls = asyncio.Semaphore(_POLLS)
        self.requests = asyncio.Semaphore(_REQUESTS)
        self.polling = 0
        self.idle: List[_Stream] = []

    async def exchange(
        self, stream: "_Stream", settings: _Settings, request: _Request
    ) -> _Response:
        try:
            response = await stream.exchange(settings, request)
        except BaseException:
            stream.close()
            raise
        if response.headers.get("connection", "").lower() == "close":
            stream.close()
        else:
            self.idle.append(stream)
        return response

    def close(self) -> None:
        while self.idle:
            self.idle.pop().close()


class Batch:
    """A stream of instances on its way to a goal of informative groups."""

    def __init__(self, client: Client, raw: Json, instances: int) -> None:
        self._client = client
        self.id: str = raw["id"]
        # Where the next instance goes; a service that restarts does not add any twice.
        self._instances = instances

    def groups(self, advantages: Optional[str] = None, after: int = 0) -> Iterator[Group]:
        """Each informative group once, as it is complete, until the goal is reached or the batch fails.

        :raises RolloutdError: when the batch ends without reaching its goal.
        """
        over = False
        while not over:
            operation = _groups_page(self.id, after, advantages)
            page, after, over = self._client._do(operation)
            yield from page
        _require_goal(self.status())

    def append(self, instances: List[Json], close: bool = False) -> Json:
        """More instances, of a batch that was begun with `"open": True`; `close` says they are the last."""
        answer = self._client._do(_append(self.id, instances, self._instances, close))
        self._instances += len(instances)
        return answer

    def status(self) -> Json:
        return self._client.call("GET", f"/v1/batches/{_quoted(self.id)}")

    def cancel(self) -> Json:
        return self._client.call("DELETE", f"/v1/batches/{_quoted(self.id)}")


class AsyncBatch:
    """The same for asyncio."""

    def __init__(self, client: AsyncClient, raw: Json, instances: int) -> None:
        self._client = client
        self.id: str = raw["id"]
        self._instances = instances

    async def groups(
        self, advantages: Optional[str] = None, after: int = 0
    ) -> AsyncIterator[Group]:
        over = False
        while not over:
            operation = _groups_page(self.id, after, advantages)
            page, after, over = await self._client._do(operation)
            for group in page:
                yield group
        _require_goal(await self.status())

    async def append(self, instances: List[Json], close: bool = False) -> Json:
        operation = _append(self.id, instances, self._instances, close)
        answer = await self._client._do(operation)
        self._instances += len(instances)
        return answer

    async def status(self) -> Json:
        return await self._client.call("GET", f"/v1/batches/{_quoted(self.id)}")

    async def cancel(self) -> Json:
        return await self._client.call("DELETE", f"/v1/batches/{_quoted(self.id)}")


def _require_goal(batch: Json) -> None:
    if batch["state"] == "complete":
        return
    missing = {"code": "batch_incomplete", "message": f"the batch is {batch['state']}"}
    raise RolloutdError(batch.get("error") or missing)


class _Stream:
    """One HTTP/1.1 connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @staticmethod
    async def open(address: _Address) -> "_Stream":
        limit = 2**20
        if address.socket_path is not None:
            return _Stream(*await asyncio.open_unix_connection(address.socket_path, limit=limit))
        opened = asyncio.open_connection(address.host, address.port, ssl=address.tls, limit=limit)
        return _Stream(*await opened)

    def close(self) -> None:
        self._writer.close()

    async def exchange(self, settings: _Settings, request: _Request) -> _Response:
        body = request.body or b""
        lines = [f"{request.method} {settings.target(request)} HTTP/1.1"]
        lines += [f"Host: {settings.address.host}", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in settings.headers(request).items()]
        self._writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
        await self._writer.drain()
        status = int((await self._line()).split(" ", 2)[1])
        answered: Dict[str, str] = {}
        while True:
            line = await self._line()
            if line == "":
                break
            name, _, value = line.partition(":")
            answered[name.strip().lower()] = value.strip()
        return _Response(status, answered, await self._body(answered))

    async def _line(self) -> str:
        line = await self._reader.readline()
        if not line.endswith(b"\n"):
            raise EOFError("the connection was closed")
        return line.decode("latin-1").rstrip("\r\n")

    async def _body(self, headers: Dict[str, str]) -> bytes:
        if "chunked" not in headers.get("transfer-encoding", "").lower():
            return await self._reader.readexactly(int(headers.get("content-length", "0")))
        parts: List[bytes] = []
        while True:
            size = int((await self._line()).split(";")[0], 16)
            if size == 0:
                while await self._line() != "":
                    pass
                return b"".join(parts)
            parts.append(await self._reader.readexactly(size))
            await self._line()
