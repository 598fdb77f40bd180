import { z } from "zod";
import type { Trajectory } from "../trajectory/record.ts";

/** What of a trajectory is given. Text is a third of it, and who trains on ids has no use for that. */
export const trajectoryQuery = { messages: z.stringbool().default(true) };

export type TrajectoryQuery = { messages: boolean };

/** Without `messages` and `tools` where a client does not want them. */
export type TrajectoryView = Omit<Trajectory, "messages" | "tools"> &
  Partial<Pick<Trajectory, "messages" | "tools">>;

/** @param record a trajectory as it is stored, in JSON */
export function viewTrajectory(record: string, { messages }: TrajectoryQuery): TrajectoryView {
  const trajectory: Trajectory = JSON.parse(record);
  if (messages) return trajectory;
  const { messages: _, tools: __, ...rest } = trajectory;
  return rest;
}
