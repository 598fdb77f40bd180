#!/usr/bin/env bash
# NeMo Gym's own command line over its own rows, and what becomes of all its example rows:
# nemo_gym.sh SERVER GYM_BIN_FOLDER WORK_FOLDER
set -euo pipefail
server=$1 bin=$2
here=$(cd "$(dirname "$0")" && pwd)
packages=$("$bin/python" -c 'import nemo_gym, pathlib; print(pathlib.Path(nemo_gym.__file__).parents[1])')
bun "$here/gym_rows.ts" "${GYM_ROWS:-$packages}"
work=$3
"$bin/python" "$here/gym_agents.py" "$here/../../dist/rolloutd" "$ROLLOUTD_IMAGE" "$ROLLOUTD_APPTAINER" "$work"
cd "$work"
rows=$packages/resources_servers/mcqa/data/example.jsonl
head=(+head_server.host=127.0.0.1 "+head_server.port=${server##*:}")
run=("$bin/gym" eval run --no-serve --agent rolloutd --num-repeats 4 --concurrency 32)

"${run[@]}" --input "$rows" --output right.jsonl "${head[@]}" >&2
"$bin/gym" eval profile --inputs right_materialized_inputs.jsonl --rollouts right.jsonl >&2
"$bin/gym" env status "${head[@]}" >&2
# One of two rows is one that the simulated engine has no answer to.
{ head -n 1 "$rows" && head -n 1 "$rows" | sed 's/response letter/answer sign/g'; } >broken-input.jsonl
"${run[@]}" --input broken-input.jsonl --output broken.jsonl "${head[@]}" >&2

"$bin/python" - "$rows" <<'END'
import importlib.metadata
import json
import sys


def read(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


right, rows = read("right.jsonl"), read(sys.argv[1])
assert len(right) == 4 * len(rows) and read("right_failures.jsonl") == []
for one in right:
    assert one["reward"] == float(one["expected_answer"] == "B")
    before = []
    for item in one["response"]["output"]:
        if "prompt_token_ids" in item:
            assert item["prompt_token_ids"][: len(before)] == before
            assert len(item["generation_token_ids"]) == len(item["generation_log_probs"]) > 0
            before = item["prompt_token_ids"] + item["generation_token_ids"]
    assert before
assert len(read("broken.jsonl")) == len(read("broken_failures.jsonl")) == 4
assert all(one["_ng_failure_class"] for one in read("broken_failures.jsonl"))
mean = sum(one["reward"] for one in right) / len(right)
print(f"NeMo Gym {importlib.metadata.version('nemo-gym')}: mean reward {mean}, 4 of 4 failures apart")
END
