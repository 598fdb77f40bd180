import { ServiceError } from "../../errors.ts";
import type { Backend, ToolSchema } from "../engine.ts";
import type { Template } from "./chat-template.ts";
import type { DialectName } from "./dialects/dialect.ts";
import { END_OF_MESSAGE, HARMONY_ENDS } from "./dialects/harmony.ts";
import { type FoundDialect, findDialect } from "./dialects/read-back.ts";
import { folderTemplate } from "./folder-template.ts";
import { readModelFolder } from "./model-folder.ts";
import { probeTemplate, type TemplateShape } from "./template-shape.ts";
import { type TextTokenizer, Tokenizer } from "./tokenizer.ts";

/** A model's tokenizer and chat template, which belong together. It may be shared by rollouts. */
export type TokenModel = {
  tokenizer: TextTokenizer;
  template: Template;
  /** What an engine may end a turn with. */
  stopIds: ReadonlySet<number>;
  /** In which the model writes tool calls, as its template's own are read back; a rollout may name another. */
  dialect: DialectName;
  /** What the template opens calls with, so that one that is not read is seen. */
  callMarkers: readonly string[];
  /** A call as the template shows it, which no dialect reads; null where its calls come back as they were. */
  unreadCall: string | null;
  /** Of which values the template does not say whether they are text; for people. */
  readBackNotes: readonly string[];
  shape(tools: ToolSchema[], variables: Record<string, unknown>): TemplateShape;
  /**
   * Runs what uses tokenizer and template. Where an engine does their work it runs several times, until all
   * answers are there; so it must not change anything before it used them last.
   *
   * @param backend which engine of that model is asked; the one that it was loaded from by default
   */
  settle<T>(work: () => T, signal: AbortSignal, backend?: Backend): Promise<T>;
};

/** Rollouts of one task kind share tools; more kinds than this probe again, at a few ms each. */
const MAX_SHAPES = 64;

/** Some templates show calls only where there are tools, or take no conversation without. */
export const PROBE_TOOLS: ToolSchema[] = [
  {
    type: "function",
    function: {
      name: "probe",
      description: "Probes.",
      parameters: {
        type: "object",
        properties: { value: { type: "string", description: "Any." } },
        required: ["value"],
      },
    },
  },
];

type LoadOptions = {
  /** Which of several templates, by name. */
  template?: string;
  /** Tries this dialect only. */
  dialect?: DialectName;
};

/** @throws ServiceError `model_folder_invalid` */
export async function loadTokenModel(path: string, options: LoadOptions = {}): Promise<TokenModel> {
  const folder = await readModelFolder(path);
  const tokenizer = new Tokenizer(folder);
  const { template, calling } = folderTemplate(folder, options.template);
  const shape = shapesOf(template, tokenizer);
  const { form, endOfTurn: endOfCalling } = shapesOf(calling, tokenizer)(PROBE_TOOLS, {});
  // One that is made for tools alone, as that of Hermes, takes no conversation without.
  const endOfTurn = calling === template ? endOfCalling : shape([], {}).endOfTurn;
  const stops = [...folder.stopTokens, endOfTurn];
  const found = findDialect(
    { template: calling, form, variables: {}, now: new Date(0) },
    tokenizer,
    stopsOf({ tokenizer, stopIds: stopIdsOf(tokenizer, "harmony", stops) }),
    options.dialect,
  );
  if (found.unread !== null) throw unreadCalls(path, found.unread);
  const { dialect } = found;
  const stopIds = stopIdsOf(tokenizer, dialect, stops);
  return {
    tokenizer,
    template,
    stopIds,
    ...readingOf(found),
    shape,
    settle: async (work) => work(),
  };
}

/** What of a model is about its calls. */
export function readingOf({ dialect, unread, markers, notes }: FoundDialect) {
  return { dialect, unreadCall: unread, callMarkers: markers, readBackNotes: notes };
}

/** A model whose calls can't be read would look like one that makes none. */
function unreadCalls(path: string, unread: string): ServiceError {
  const message = `${path}: no dialect reads the tool calls that the chat template shows, ${unread}`;
  const mend =
    "put a chat_template.jinja into the folder whose calls one of the values of `chat.dialect` reads; " +
    "for rollouts without tools one that shows no calls will do";
  return new ServiceError("model_folder_invalid", message, { mend });
}

/** What an engine is told to stop at. `stops` are what the folder names, and what ends a turn in the template. */
export function stopIdsOf(
  tokenizer: TextTokenizer,
  dialect: DialectName,
  stops: (string | number | null)[],
): Set<number> {
  const ends = dialect === "harmony" ? [...stops, ...HARMONY_ENDS] : stops;
  const ids = ends.map((stop) => (typeof stop === "string" ? tokenizer.addedId(stop) : stop));
  const stopIds = new Set(ids.filter((id) => typeof id === "number"));
  const endOfMessage = tokenizer.addedId(END_OF_MESSAGE);
  if (dialect === "harmony" && endOfMessage !== undefined) stopIds.delete(endOfMessage);
  return stopIds;
}

/** What an engine may end a turn with, as text. */
export function stopsOf({ tokenizer, stopIds }: Pick<TokenModel, "tokenizer" | "stopIds">) {
  return [...stopIds].flatMap((id) => tokenizer.addedContent(id) ?? []);
}

/** The shapes of one template, each found once. */
export function shapesOf(template: Template, tokenizer: TextTokenizer): TokenModel["shape"] {
  const shapes = new Map<string, TemplateShape>();
  return (tools, variables) => {
    const key = JSON.stringify([tools, variables]);
    const known = shapes.get(key);
    if (known) return known;
    const addedTokens = tokenizer.addedContents;
    const probed = probeTemplate(template, { tools, variables, now: new Date(), addedTokens });
    if (shapes.size >= MAX_SHAPES) shapes.clear();
    shapes.set(key, probed);
    return probed;
  };
}
