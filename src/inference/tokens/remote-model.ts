import { ServiceError } from "../../errors.ts";
import { exactJson } from "../../lib/exact-json.ts";
import type { Backend } from "../engine.ts";
import type { Connections } from "../exchange.ts";
import type { Template } from "./chat-template.ts";
import { findDialect } from "./dialects/read-back.ts";
import { EngineRoutes } from "./engine-routes.ts";
import { RemoteAnswers } from "./remote-answers.ts";
import type { TemplateShape } from "./template-shape.ts";
import { PROBE_TOOLS, readingOf, shapesOf, stopIdsOf, type TokenModel } from "./token-model.ts";
import { piecesOf, type TextTokenizer } from "./tokenizer.ts";

/** What families end turns and mark reasoning, calls and results with, where it is one token. */
const MARKERS = [
  ..."<|im_start|> <|im_end|> <|endoftext|> <think> </think> <tool_call> </tool_call>".split(" "),
  ..."<tool_response> </tool_response> <|eot_id|> <|eom_id|> <|start_header_id|>".split(" "),
  ..."<|end_header_id|> <|begin_of_text|> <|python_tag|> <|user|> <|assistant|>".split(" "),
  ..."<|observation|> <|system|> <arg_key> </arg_key> <arg_value> </arg_value>".split(" "),
  ..."[INST] [/INST] [TOOL_CALLS] [TOOL_RESULTS] [/TOOL_RESULTS] [AVAILABLE_TOOLS]".split(" "),
  ..."[/AVAILABLE_TOOLS] [CALL_ID] [ARGS] [THINK] [/THINK] <s> </s>".split(" "),
  ..."<｜User｜> <｜Assistant｜> <｜begin▁of▁sentence｜> <｜end▁of▁sentence｜>".split(" "),
  ..."<｜tool▁calls▁begin｜> <｜tool▁calls▁end｜> <｜tool▁call▁begin｜> <｜tool▁call▁end｜>".split(
    " ",
  ),
  ..."<｜tool▁sep｜> <｜tool▁outputs▁begin｜> <｜tool▁outputs▁end｜>".split(" "),
  ..."<｜tool▁output▁begin｜> <｜tool▁output▁end｜> <|tool_calls_section_begin|>".split(" "),
  ..."<|tool_calls_section_end|> <|tool_call_begin|> <|tool_call_end|>".split(" "),
  ..."<|start|> <|end|> <|message|> <|channel|> <|constrain|> <|call|> <|return|>".split(" "),
  ..."<|tool_call_argument_begin|> <|im_user|> <|im_assistant|> <|im_system|> <|im_middle|>".split(
    " ",
  ),
];

/**
 * Tokenizer and chat template of an engine that has routes for them, so that no model folder is needed. All
 * that is true of a folder's model is true of it, because the same code asks it; only each question is a
 * call of the engine, or of another one of the same model.
 *
 * @throws ServiceError `engine_*`, `template_refused`
 */
export async function loadRemoteModel(
  connections: Connections,
  backend: Backend,
  signal: AbortSignal,
): Promise<TokenModel> {
  const routes = new EngineRoutes(connections, backend);
  const answers = new RemoteAnswers();
  const tokenizer = await remoteTokenizer(routes, answers, signal);
  const template: Template = {
    // The engine keeps it to itself.
    text: "",
    render(messages, tools, options) {
      const { addGenerationPrompt, variables } = options;
      const key = exactJson(["render", messages, tools, addGenerationPrompt, variables]);
      return answers.need(key, async (asked, signal) => {
        const ids = await asked.tokenizeChat(messages, tools, options, signal);
        return asked.decode(ids, signal);
      });
    },
  };
  const shape = shapesOf(template, tokenizer);
  const settle: TokenModel["settle"] = (work, signal, given = backend) =>
    answers.settle(work, new EngineRoutes(connections, given), signal);
  const { endOfTurn, form } = await settle(() => shape([], {}), signal);
  const given = { template, form, variables: {}, now: new Date(0) };
  const ends = endOfTurn === null ? [] : [endOfTurn];
  const found = await settle(() => {
    // Some templates show calls, and in what form, only where there are tools.
    const { form, shownCall } = callingShape(shape) ?? { form: given.form, shownCall: null };
    return shownCall === null ? null : findDialect({ ...given, form }, tokenizer, ends);
  }, signal);
  const reading = readingOf(found ?? { dialect: "none", unread: null, notes: [], markers: [] });
  const stopIds = stopIdsOf(tokenizer, reading.dialect, [endOfTurn]);
  return { tokenizer, template, stopIds, ...reading, shape, settle };
}

/** Null where the template takes no tools. */
function callingShape(shape: TokenModel["shape"]): TemplateShape | null {
  try {
    return shape(PROBE_TOOLS, {});
  } catch (error) {
    if (error instanceof ServiceError && error.code === "template_refused") return null;
    throw error;
  }
}

async function remoteTokenizer(
  routes: EngineRoutes,
  answers: RemoteAnswers,
  signal: AbortSignal,
): Promise<TextTokenizer> {
  const idOf = new Map<string, number>();
  const contentOf = new Map<number, string>();
  const encoded = await Promise.all(MARKERS.map((marker) => routes.encode(marker, signal)));
  for (const [index, ids] of encoded.entries()) {
    const [id] = ids;
    const marker = MARKERS[index];
    if (ids.length !== 1 || id === undefined || marker === undefined) continue;
    idOf.set(marker, id);
    contentOf.set(id, marker);
  }
  if (idOf.size === 0) {
    const message = "the engine's tokenizer has none of the known markers as one token";
    const mend = "add the backend with --model-dir";
    throw new ServiceError("tokens_unavailable", message, { mend });
  }
  const tokenizer: TextTokenizer = {
    encode: (text) =>
      text === ""
        ? []
        : answers.need(`encode ${text}`, (asked, signal) => asked.encode(text, signal)),
    decode(ids) {
      const list = Array.from(ids);
      if (list.length === 0) return "";
      return answers.need(`decode ${list}`, (asked, signal) => asked.decode(list, signal));
    },
    addedId: (content) => idOf.get(content),
    addedContent: (id) => contentOf.get(id),
    addedContents: [...idOf.keys()],
    pieces: (ids) => piecesOf(tokenizer, ids),
  };
  return tokenizer;
}
