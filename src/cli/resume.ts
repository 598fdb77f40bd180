import { createReadStream, existsSync, renameSync, rmSync } from "node:fs";
import { createInterface } from "node:readline";
import { ServiceError } from "../errors.ts";
import { ResultFile } from "./result-file.ts";
import type { EndedRollout, PlannedRollout, RolloutResult } from "./run-collect.ts";

type Resumed = {
  /** Results that stand. */
  kept: EndedRollout[];
  /** What is still to be run. */
  rest: PlannedRollout[];
};

/**
 * What an earlier run left in its file of results: those of the same row and sample stand that have a reward, or failed
 * by the policy's own doing. The file then holds them alone, without a line that a kill has torn.
 *
 * @throws ServiceError `invalid_field` where there is no such file
 */
export async function resume(path: string, planned: PlannedRollout[]): Promise<Resumed> {
  if (!existsSync(path)) {
    const mend = "name the results of an earlier run, or leave --resume out";
    throw new ServiceError("invalid_field", `there is no file ${path} to go on with`, { mend });
  }
  const open = new Map(planned.map((rollout) => [placeOf(rollout), rollout]));
  const kept: EndedRollout[] = [];
  const fresh = `${path}.resumed`;
  try {
    const file = new ResultFile(fresh, false);
    for await (const line of createInterface({ input: createReadStream(path) })) {
      const result = parse(line);
      if (!result || !stands(result)) continue;
      const { trajectory: _, ...ended } = result;
      const rollout = open.get(placeOf(result));
      if (!rollout || !Bun.deepEquals(rollout.request.instance, result.instance)) continue;
      open.delete(placeOf(result));
      kept.push(ended);
      file.add(result);
    }
    renameSync(fresh, path);
  } finally {
    rmSync(fresh, { force: true });
  }
  return { kept, rest: [...open.values()] };
}

function placeOf({ row, sample }: { row: number; sample: number }): string {
  return `${row}-${sample}`;
}

function stands({ reward, error }: RolloutResult): boolean {
  return reward !== null || error?.boundary === "policy";
}

function parse(line: string): RolloutResult | null {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}
