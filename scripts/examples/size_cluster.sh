#!/usr/bin/env bash
# How long do so many rollouts take on so many engines? Starts simulated engines and a service in front of them, and
# plays random rollouts as long as yours through it, sandboxes and all:
#
#     source .tools/env
#     scripts/examples/size_cluster.sh 4      # engines
#     scripts/examples/size_cluster.sh 8
#
# The engines live SPEED times as fast, the service and its sandboxes do not: where half the SPEED gives another answer, this
# machine is what limits. It needs some seconds of processor time for each hundred rollouts.
set -euo pipefail
engines=${1:?usage: size_cluster.sh ENGINES}
rolloutd=${ROLLOUTD:-dist/rolloutd}
rollouts=${ROLLOUTS:-512} samples=8                # of each instance
preset=${PRESET:-qwen3-14b@h100}                   # rolloutd simulate --help lists them
slots=${SLOTS_PER_ENGINE:-16}                      # rollouts at once for each engine
speed=${SPEED:-10}
# Median and sigma of lognormal distributions, and the most turns. These are OpenHands' on SWE-Gym.
turns=${TURNS:-13,0.9} max_turns=${MAX_TURNS:-50}
tokens=${TOKENS:-140,0.6}                          # of a turn, beside the 110 of its call
observation=${OBSERVATION_TOKENS:-430} prompt=${PROMPT_TOKENS:-4000}

work=$(mktemp -d /var/tmp/rolloutd-size-XXXXXX)
children=()
clean_up() {
  for pid in "${children[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${children[@]}"; do wait "$pid" 2>/dev/null || true; done
  rm -rf "$work"
}
trap clean_up EXIT
is_there() {
  for _ in $(seq 300); do [ -s "$1" ] && return; sleep 0.1; done
  echo "size_cluster: $1 does not come; see $1.log" >&2
  exit 1
}

# Each byte is a token, so a tool's answer of so many bytes is an observation of so many tokens.
call='{"name": "execute_bash", "arguments": {"command": "head -c '$observation' /dev/zero | tr \"\\0\" x"}}'
for engine in $(seq "$engines"); do
  "$rolloutd" simulate --policy random --turns "$turns" --tokens "$tokens" --call "$call" --wire vllm \
    --preset "$preset" --speed "$speed" --port-file "$work/port.$engine" --model-dir "$work/model" \
    >/dev/null 2>"$work/port.$engine.log" &
  children+=($!)
  is_there "$work/port.$engine"
done

run_slots=$((slots * engines))
"$rolloutd" serve --port 0 --data-dir "$work/data" --driver bubblewrap --image "$ROLLOUTD_IMAGE" \
  --run-slots "$run_slots" >"$work/serve" 2>"$work/serve.log" &
children+=($!)
is_there "$work/serve"
export ROLLOUTD_SERVER=$work/data/rolloutd.sock
for engine in $(seq "$engines"); do
  "$rolloutd" backends add "http://127.0.0.1:$(cat "$work/port.$engine")/v1" --model-dir "$work/model" >/dev/null
done

filler=$(head -c "$prompt" /dev/zero | tr '\0' x)
for row in $(seq $((rollouts / samples))); do
  echo '{"data_source": "command", "instruction": "'"$row $filler"'", "tools": ["execute_bash"], "verifier": {"command": "true"}}'
done >"$work/rows.jsonl"

started=$(date +%s%N)
"$rolloutd" run "$work/rows.jsonl" --server "$ROLLOUTD_SERVER" --samples "$samples" --max-turns "$max_turns" \
  --out "$work/rollouts.jsonl" >"$work/table" || { cat "$work/table"; exit 1; }
took=$((($(date +%s%N) - started) / 1000000))
awk -v ms="$took" -v speed="$speed" -v engines="$engines" -v rollouts="$rollouts" -v preset="$preset" 'BEGIN {
  minutes = ms * speed / 60000
  printf "%d rollouts on %d engines (%s): %.1f minutes, %.1f engine hours for 1,000 rollouts\n",
    rollouts, engines, preset, minutes, minutes * engines / 60 * 1000 / rollouts
}'
metrics_of() {
  exec 3<>"/dev/tcp/127.0.0.1/$1"
  printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3
  cat <&3
}
for engine in $(seq "$engines"); do metrics_of "$(cat "$work/port.$engine")"; done | awk '
  /prefix_cache_queries/ { asked += $2 } /prefix_cache_hits/ { found += $2 } /num_preemptions/ { out += $2 }
  END { printf "%.1f %% of the prompts'"'"' tokens were in the caches; requests thrown out of memory: %d\n", 100 * found / asked, out }'
