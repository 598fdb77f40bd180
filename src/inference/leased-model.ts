import { ServiceError } from "../errors.ts";
import type { Backend } from "./engine.ts";
import { takeTurn } from "./leased-turn.ts";
import type { TokenModel } from "./tokens/token-model.ts";
import type { Turns } from "./turn-gate.ts";
import { TRIED_AGAIN } from "./turn-messages.ts";

const NO_USAGE = { contextTokens: null, sampledTokens: 0, load: null };

type LeasedOptions = {
  backend: Backend;
  turns: Turns;
  job: { jobId: string; attempt: number };
  load(backend: Backend, signal: AbortSignal): Promise<TokenModel>;
};

/**
 * A model whose engines tokenise and render for it, on whichever of them works. One is asked until it fails;
 * then the desk is, as for a call of the model, and the rollout goes where it says. A model in a folder is
 * itself.
 *
 * @throws ServiceError `engine_*`, and what `load` throws; the abort reason of `signal`
 */
export async function leasedModel(
  { backend: first, turns, job, load }: LeasedOptions,
  signal: AbortSignal,
): Promise<TokenModel> {
  if (first.modelDir !== undefined) return load(first, signal);
  let backend = first;
  async function ask<T>(
    call: (backend: Backend, signal: AbortSignal) => Promise<T>,
    callSignal: AbortSignal,
  ): Promise<T> {
    try {
      return await call(backend, callSignal);
    } catch (error) {
      if (!(error instanceof ServiceError) || !TRIED_AGAIN.has(error.code)) throw error;
    }
    const contextTokens = () => null;
    const leased = {
      ...{ ...job, contextTokens },
      async call(lease: { backend: Backend }, _index: number, turnSignal: AbortSignal) {
        const reply = await call(lease.backend, turnSignal);
        backend = lease.backend;
        return { reply, over: true, usage: NO_USAGE };
      },
    };
    return (await takeTurn(turns, leased, callSignal)).reply;
  }
  const model = await ask(load, signal);
  const settle: TokenModel["settle"] = (work, workSignal) =>
    ask((asked, callSignal) => model.settle(work, callSignal, asked), workSignal);
  return { ...model, settle };
}
