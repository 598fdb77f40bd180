import { BackendRegistry } from "../../src/inference/registry.ts";
import { TurnDesk } from "../../src/inference/turn-desk.ts";
import {
  type Announced,
  type Pause,
  Weights,
  type WeightsRecord,
} from "../../src/inference/weights.ts";

/** What is durable of the weights, in memory. */
export function weightsRecord(): WeightsRecord {
  const announced: Announced[] = [];
  let paused: Pause | null = null;
  return {
    announced: () => [...announced],
    announce: (version) => announced.push(version),
    paused: () => paused,
    setPaused: (pause) => {
      paused = pause;
    },
  };
}

/** Weights that nobody samples with. */
export function idleWeights(): Weights {
  const clock = { nowMs: () => 0 };
  const health = { failuresInARow: 1, ejectMs: 1, maxEjectMs: 1 };
  const limits = { maxRetries: 0, backendWaitMs: 1, maxTurns: 1 };
  const desk = new TurnDesk({ registry: new BackendRegistry(), clock, health, ...limits });
  return new Weights({ desk, clock, record: weightsRecord() });
}
