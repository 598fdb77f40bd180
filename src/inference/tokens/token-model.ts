import type { Backend, ToolSchema } from "../engine.ts";
import type { Template } from "./chat-template.ts";
import { chooseDialect } from "./dialects/choose.ts";
import type { DialectName } from "./dialects/dialect.ts";
import { END_OF_MESSAGE, HARMONY_ENDS } from "./dialects/harmony.ts";
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
  /** In which the model writes tool calls, by its template; a rollout may name another. */
  dialect: DialectName;
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
};

/** @throws ServiceError `model_folder_invalid` */
export async function loadTokenModel(path: string, options: LoadOptions = {}): Promise<TokenModel> {
  const folder = await readModelFolder(path);
  const tokenizer = new Tokenizer(folder);
  const { template, calling } = folderTemplate(folder, options.template);
  const shape = shapesOf(template, tokenizer);
  const { shownCall, endOfTurn: endOfCalling } = shapesOf(calling, tokenizer)(PROBE_TOOLS, {});
  // One that is made for tools alone, as that of Hermes, takes no conversation without.
  const endOfTurn = calling === template ? endOfCalling : shape([], {}).endOfTurn;
  const dialect = chooseDialect(shownCall, calling.text, tokenizer.addedContents);
  const stopIds = stopIdsOf(tokenizer, dialect, [...folder.stopTokens, endOfTurn]);
  return { tokenizer, template, stopIds, dialect, shape, settle: async (work) => work() };
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
