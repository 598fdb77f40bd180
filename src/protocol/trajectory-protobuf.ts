import { create, type DescMessage, type Message, toBinary } from "@bufbuild/protobuf";
import type { TokenSegment } from "../trajectory/record.ts";
import { logprobArray } from "./logprob-array.ts";
import { readProto } from "./proto-file.ts";
import protoText from "./rollout.proto" with { type: "text" };
import type { TrajectoryView } from "./trajectory-view.ts";

export { protoText };

let schema: DescMessage | undefined;

/** The type that `rollout.proto` describes. */
export function trajectorySchema(): DescMessage {
  schema ??= readProto(protoText, "rollout.proto").getMessage("rolloutd.v1.Trajectory");
  if (!schema) throw new Error("rollout.proto has no Trajectory");
  return schema;
}

/** A trajectory as `rolloutd.v1.Trajectory`; see `rolloutd schema proto`. */
export function trajectoryToProtobuf(trajectory: TrajectoryView): Uint8Array {
  const { segments, tools = [], messages = [], ...rest } = trajectory;
  const fields = {
    ...rest,
    segments: segments.map(segmentFields),
    tools: tools.map(({ function: { parameters, ...tool } }) => {
      return { ...tool, parameters: JSON.stringify(parameters) };
    }),
    messages: messages.map((message) => {
      if (message.role !== "assistant") return message;
      const calls = message.tool_calls ?? [];
      return { ...message, tool_calls: calls.map(({ id, function: call }) => ({ id, ...call })) };
    }),
  };
  const init = localNames(fields) as Record<string, unknown>;
  return toBinary(trajectorySchema(), create(trajectorySchema(), init) as Message);
}

function segmentFields({ logprobs, ...segment }: TokenSegment) {
  if (logprobs === null) return segment;
  const values = logprobArray(logprobs);
  const name = values instanceof Float32Array ? "float32" : "float64";
  return { ...segment, logprobs: { [name]: logprobs } };
}

/** The library calls `job_id` `jobId`. What is null is left out, as protobuf has no null. */
function localNames(value: unknown): unknown {
  if (Array.isArray(value)) return typeof value[0] === "object" ? value.map(localNames) : value;
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(([, inner]) => inner !== null);
  return Object.fromEntries(
    entries.map(([key, inner]) => [
      key.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase()),
      localNames(inner),
    ]),
  );
}
