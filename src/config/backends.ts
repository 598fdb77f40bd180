import { z } from "zod";
import { MAX_TIMER_MS } from "../lib/clock.ts";
import { bytes, count, flag, httpUrl, ms, networks, path, setting, whole } from "./setting.ts";

/** Inference servers, calls of them, and the choice between them. */
export const BACKEND_SETTINGS = {
  backend: setting(httpUrl, undefined, "an inference server to start with (URL with /v1)"),
  model: setting(z.string(), undefined, "the model's name on that server, if it has several"),
  model_dir: setting(path, undefined, "its model's Hugging Face folder: token ids instead of text"),
  api_key_env: setting(z.string(), undefined, "name of the variable that holds that server's key"),
  engine: setting(
    z.enum(["auto", "vllm", "sglang", "prorl", "openai", "text"]),
    "auto",
    "that server's kind, where it is not to be found out; text leaves token ids aside",
  ),
  backend_key_envs: setting(
    z.string().regex(/^\w+(,\w+)*$/, "must be names of variables, with commas between them"),
    undefined,
    "variables that a request to add a backend may name as its key; none besides api_key_env by default",
  ),
  backend_networks: setting(
    networks,
    "loopback,private,public",
    "where inference servers may be, when they are added: any of loopback, private, public",
  ),
  balancing: setting(
    z.enum(["least-work", "min-heap", "round-robin", "static", "consistent-hash"]),
    "least-work",
    "which backend a rollout goes to; all but least-work are there for comparison",
  ),
  balancing_moves: setting(
    flag,
    true,
    "a rollout may go on, between turns, on a backend with so much less context to read that computing its own anew pays",
  ),
  backend_turns: setting(count, 1_024, "calls of one backend at once; more wait for their turn"),
  load_poll_ms: setting(ms, 5_000, "between two looks at the load and the memory of an engine"),
  backend_wait_ms: setting(ms, 300_000, "how long a call waits while no backend works"),
  turn_retries: setting(whole(0), 3, "times that a call is tried again when its engine fails"),
  backend_failures: setting(count, 5, "failed calls in a row that take a backend out"),
  backend_eject_ms: setting(ms, 1_000, "how long at first; twice as long each further time"),
  backend_max_eject_ms: setting(ms, 30_000, "how long a backend is out between two probes at most"),
  engine_stall_ms: setting(
    whole(0, MAX_TIMER_MS),
    0,
    "longest silence within a reply, which is then streamed; 0 does not stream",
  ),
  engine_call_ms: setting(ms, 600_000, "time limit of one call of a model"),
  max_reply_bytes: setting(bytes, 16 * 1024 * 1024, "size of an inference server's reply"),
} as const;
