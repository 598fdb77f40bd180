import { Packr } from "msgpackr/pack";
import { logprobArray } from "./logprob-array.ts";
import type { TrajectoryView } from "./trajectory-view.ts";

/**
 * Numbers as they lie in memory, little-endian. `dtype` is NumPy's name; in Python's `array` module `<u4` is
 * "I", `<f4` "f" and `<f8` "d".
 */
export type PackedNumbers = { dtype: "<u4" | "<f4" | "<f8"; data: Uint8Array };

// Records are msgpackr's own extension, which other readers don't know.
const packr = new Packr({ useRecords: false, variableMapSize: true });

/**
 * A trajectory in msgpack: the fields of the JSON form, of which `ids` and `logprobs` of each segment are
 * `PackedNumbers`.
 */
export function trajectoryToMsgpack(trajectory: TrajectoryView): Uint8Array {
  const segments = trajectory.segments.map(({ ids, logprobs, ...segment }) => ({
    ...segment,
    ids: { dtype: "<u4", data: bytes(Uint32Array.from(ids)) },
    logprobs: logprobs === null ? null : packFloats(logprobs),
  }));
  return packr.pack({ ...trajectory, segments });
}

function packFloats(values: readonly number[]): PackedNumbers {
  const floats = logprobArray(values);
  return { dtype: floats instanceof Float32Array ? "<f4" : "<f8", data: bytes(floats) };
}

/** Every machine that the service runs on is little-endian. */
function bytes({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}
