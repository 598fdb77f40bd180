import type { CallOptions, ChatOptions, Dialogue } from "../agent/dialogue.ts";
import { TextDialogue } from "../agent/text-dialogue.ts";
import { TokenDialogue } from "../agent/token-dialogue.ts";
import { ServiceError } from "../errors.ts";
import type { Backend, EngineClient, Message, Sampling, ToolSchema } from "../inference/engine.ts";
import type { TokenEngine } from "../inference/generate.ts";
import { leasedChat } from "../inference/leased-chat.ts";
import { leasedModel } from "../inference/leased-model.ts";
import { leasedTokens } from "../inference/leased-tokens.ts";
import type { TokenModel } from "../inference/tokens/token-model.ts";
import type { Turns } from "../inference/turn-gate.ts";
import type { EngineRoute } from "../protocol/rollout.ts";
import { routedBackend, routedTurns } from "./routed-backend.ts";

/** How a thread reaches models. */
export type Engines = {
  chat: EngineClient;
  tokens: TokenEngine;
  /** Leave for each call; it says which backend is to be called. */
  turns: Turns;
  /** Tokenizer and chat template of a backend's model; loaded once per thread. */
  tokenModel(backend: Backend, signal: AbortSignal): Promise<TokenModel>;
};

/** What a rollout asks for: `exact` fails without token ids, `text` does not use them. */
export type TokenMode = "exact" | "text" | "auto";

type OpenOptions = CallOptions &
  ChatOptions & {
    attempt: number;
    signal: AbortSignal;
    mode: TokenMode;
    backend: Backend;
    /** Where the rollout came through another API, how its backends are called. */
    route: EngineRoute | undefined;
    sampling: Sampling;
    prompt: Message[];
    tools: ToolSchema[];
  };

/**
 * A conversation with the rollout's backend: by token ids where the backend takes them and its model folder
 * is known, or it renders and tokenises itself; as text otherwise, with the ids that the engine tells of each call.
 *
 * @throws ServiceError `tokens_unavailable`, `model_folder_invalid`, `template_refused`
 */
export async function openDialogue(engines: Engines, options: OpenOptions): Promise<Dialogue> {
  const { mode, prompt, attempt, route, signal, ...rest } = options;
  const backend = route ? routedBackend(options.backend, route) : options.backend;
  const turns = route ? routedTurns(engines.turns, route) : engines.turns;
  const job = { jobId: options.jobId, attempt };
  const missing = mode === "text" ? "the rollout asks for text" : whatIsMissing(backend);
  if (missing === null) {
    const { tokenModel: load } = engines;
    const model = await leasedModel({ backend, turns, job, load }, signal);
    const engine = leasedTokens(engines.tokens, turns, job);
    return TokenDialogue.open(prompt, { ...rest, backend, model, engine }, signal);
  }
  if (mode === "exact" && backend.profile?.rung !== "chat_ids") {
    const message = `backend "${backend.id}" can't give exact token ids: ${missing}`;
    const mend = "add the backend with --model-dir, on an engine that generates from token ids";
    throw new ServiceError("tokens_unavailable", message, { mend });
  }
  // ProRL's server has no route for messages.
  if (backend.profile?.rung === "prorl_generate") {
    const message = `backend "${backend.id}" takes token ids only, and ${missing}`;
    const mend = "add the backend with --model-dir, and ask for no text";
    throw new ServiceError("tokens_unavailable", message, { mend });
  }
  const engine = leasedChat(engines.chat, turns, job);
  return new TextDialogue(prompt, { ...rest, backend, engine, keepIds: mode !== "text" });
}

function whatIsMissing({ profile, modelDir }: Backend): string | null {
  if (!modelDir && !profile?.tokenizes_chat) {
    return "its model folder is not known, and it has no routes that render and tokenise";
  }
  const rung = profile?.rung ?? "chat";
  return rung === "chat" || rung === "chat_ids" ? "it takes messages only" : null;
}
