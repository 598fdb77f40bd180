"""What the client makes of values of odd types, without a service. Prints nothing where all is as it should be."""

import uuid
import warnings

import rolloutd
from rolloutd import NothingToTrain, Trajectory


def trajectory(*versions):
    """One segment of two prompt ids and two sampled ones for each version."""
    spans = [{"kind": "prompt", "start": 0, "end": 2}]
    for turn, _ in enumerate(versions):
        spans.append({"kind": "sampled", "start": 2 + 2 * turn, "end": 4 + 2 * turn, "turn": turn})
    ids = list(range(2 + 2 * len(versions)))
    segment = {"ids": ids, "logprobs": None, "spans": spans}
    turns = [{"weight_version": version} for version in versions]
    return Trajectory({"segments": [segment, segment], "turns": turns})


class Scalar:
    """As NumPy's and torch's scalars and arrays behave."""

    def __init__(self, value):
        self.value = value

    def tolist(self):
        return self.value


MIXED = trajectory("3", "4")
KEEPS_3 = [
    *("3", 3, 3.0, Scalar(3), Scalar("3")),
    *({"3"}, {3}, [3.0], (3,), frozenset([3]), [Scalar(3)], Scalar([3]), Scalar([Scalar(3)])),
    *({"3": 1}, {3: 1}.keys(), range(3, 4), iter(["3"]), (one for one in [3]), ["3", "9"], "3"),
]
with warnings.catch_warnings():
    warnings.simplefilter("error")
    for versions in KEEPS_3:
        # Both segments: what can be read once only is not used up by the first.
        masks = [sample.mask for sample in MIXED.samples(versions=versions)]
        assert masks == [[0, 0, 1, 1, 0, 0]] * 2, (versions, masks)
    assert [sum(one.mask) for one in MIXED.samples(versions=[3, 4])] == [4, 4]
    assert MIXED.samples() == MIXED.samples(versions=None)
    # A prompt alone has nothing to mask.
    assert trajectory().samples(versions=["3"])[0].mask == [0, 0]


def raised(error, work):
    try:
        work()
    except error as thrown:
        return str(thrown)
    raise AssertionError(f"{error} was not raised")


TYPES = [b"3", bytearray(b"3"), True, [True], [None], {None, "3"}, [b"3"], [[3]], [{}], object()]
for versions in TYPES:
    raised(TypeError, lambda: MIXED.samples(versions=versions))
for versions in [[], set(), (), {}, iter([]), Scalar([]), "", [""]]:
    raised(ValueError, lambda: MIXED.samples(versions=versions))
for versions in [float("nan"), float("inf"), 2**53, [10.0**20]]:
    raised(ValueError, lambda: MIXED.samples(versions=versions))
silent = raised(ValueError, lambda: trajectory(None).samples(versions=["3"]))
assert "no weight versions" in silent, silent

for versions in ["33", "13", [5], {"v3"}, [3.5]]:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        samples = MIXED.samples(versions=versions)
    assert [sum(sample.mask) for sample in samples] == [0, 0]
    [warning] = warned
    assert warning.category is NothingToTrain and warning.filename == __file__, warning
    assert "masks every token: they are of ['3', '4']" in str(warning.message), warning

same = uuid.uuid4()
with_id = rolloutd._with_id
assert with_id({"id": same})["id"] == str(same) and with_id({"id": "a"}) == {"id": "a"}
assert len(with_id({"id": None})["id"]) == 36 == len(with_id({})["id"])
for request in ["instance", ["id"], None, {"id": 7}, {"id": b"a"}]:
    raised(TypeError, lambda: with_id(request))
awaited = rolloutd._Awaited()
raised(ValueError, lambda: list(awaited.named([{"id": "a"}, {"id": "a"}])))

assert rolloutd._query(paused=True, n=Scalar(3), label="a b", gone=None) == "?paused=true&n=3&label=a+b"
for value in [b"x", ["a"], {"a"}, object()]:
    raised(TypeError, lambda: rolloutd._query(label=value))

assert [rolloutd._version(one) for one in (3, 3.0, 3.5, "3", Scalar(7))] == ["3", "3", "3.5", "3", "7"]
client = rolloutd.Client("http://127.0.0.1:1", patience_s=0)
for version in [None, True, b"3", [3], float("nan"), ""]:
    raised((TypeError, ValueError), lambda: client.announce_weights(version))
    raised((TypeError, ValueError), lambda: client.new_weights(version).__enter__())
