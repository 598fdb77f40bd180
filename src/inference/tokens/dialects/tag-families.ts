import { attributeTags } from "./attribute-tags.ts";

const invoke = (prefix: string) => ({
  call: [`<${prefix}invoke`, `</${prefix}invoke>`] as const,
  parameter: [`<${prefix}parameter`, `</${prefix}parameter>`] as const,
  headEnd: ">",
  name: "name",
  key: "name",
});

/**
 * DeepSeek from V3.2 on: `<｜DSML｜invoke name="f">` around parameters that say themselves whether they are text
 * (`string="true"`) or JSON, or around one JSON object. V3.2 and V4 name the section differently.
 */
export const dsml = attributeTags({
  ...invoke("｜DSML｜"),
  sections: [
    ["<｜DSML｜function_calls>", "</｜DSML｜function_calls>"],
    ["<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>"],
  ],
  isText: (head) => /\sstring="true"/.test(head),
});

/** MiniMax M2: `<minimax:tool_call><invoke name="f"><parameter name="p">v</parameter></invoke>…`. */
export const minimaxM2 = attributeTags({
  ...invoke(""),
  sections: [["<minimax:tool_call>", "</minimax:tool_call>"]],
  isText: () => null,
});

/** Kimi K3: `<|open|>call tool="f" index="1"<|sep|>` around arguments that name their type. */
export const kimiK3 = attributeTags({
  call: ["<|open|>call", "<|close|>call<|sep|>"],
  parameter: ["<|open|>argument", "<|close|>argument<|sep|>"],
  headEnd: "<|sep|>",
  name: "tool",
  key: "key",
  sections: [["<|open|>tools<|sep|>", "<|close|>tools<|sep|>"]],
  isText: (head) => {
    const type = /\stype="(\w+)"/.exec(head)?.[1];
    return type === undefined ? null : type === "string";
  },
});

/** Muse: as MiniMax M2, with tags of its own, each call in a message. */
export const muse = attributeTags({
  ...invoke("atem:"),
  sections: [["<atem:function_calls>", "</atem:function_calls>"]],
  isText: () => null,
});

/** MiniCPM 5: `<function name="f"><param name="p">v</param></function>`. */
export const minicpm = attributeTags({
  call: ["<function ", "</function>"],
  parameter: ["<param", "</param>"],
  headEnd: ">",
  name: "name",
  key: "name",
  sections: [],
  isText: () => null,
});
