/**
 * A task kind of one's own, complete: `rolloutd serve --tasks scripts/examples/count-words.ts …`
 *
 * Its rows look like {"data_source": "count-words", "text": "to be or not to be", "word": "be"}. INIT writes the text
 * into the sandbox, RUN lets the model work there with bash, and EVAL compares its final message with the truth.
 * What is imported here are types alone, so that the module loads anywhere; it runs in each thread of the service,
 * with all its rights.
 */
import type { TaskKind } from "../../src/tasks/task-kind.ts";

type Instance = { text: string; word: string };

const FILE = "/workspace/text.txt";

const countWords: TaskKind<Instance> = {
  name: "count-words",
  dataSources: ["count-words"],
  needsBackend: true,
  tools: ["execute_bash", "finish"],

  /** Called when a rollout is submitted; what it throws refuses the row. */
  parse({ text, word }) {
    if (typeof text === "string" && typeof word === "string" && word !== "") return { text, word };
    throw new Error("a row has a text and a word");
  },

  /** The agent has a sandbox of the service's default image. EVAL needs none: it looks at the message only. */
  sandboxes: () => ({ agent: true, evaluation: "none", image: null }),

  async init({ text }, sandbox, signal) {
    await sandbox?.writeFile(FILE, text, 0o644, signal);
  },

  async run({ word }, context) {
    const { stopReason, finalMessage } = await context.agent({
      prompt: {
        texts: {
          system: "You answer with a number, by calling finish.",
          user: "How often is the word {{word}} in the file {{file}}?",
        },
        fields: { word, file: FILE },
      },
      tools: countWords.tools,
      maxTurns: 10,
    });
    const { turns } = context.recorder;
    return { stop_reason: stopReason, final_message: finalMessage, turns };
  },

  /** A wrong answer is a verdict. An error that is thrown here is a failed verifier: there is no reward then. */
  async evaluate({ text, word }, outcome) {
    const said = outcome.final_message?.match(/\d+/)?.[0];
    if (said === undefined) {
      return { reward: 0, rule: "no_number", reason: "The answer has no number." };
    }
    const count = text.split(/\s+/).filter((each) => each === word).length;
    return Number(said) === count
      ? { reward: 1, rule: "right_count", reason: `There are ${count}.` }
      : { reward: 0, rule: "wrong_count", reason: `There are ${count}, not ${said}.` };
  },
};

export const taskKinds = [countWords];
