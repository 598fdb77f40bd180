/** Text to ids and back, as the simulated engine's model has it. */
export type SimulatedTokenizer = {
  vocabSize: number;
  encode(text: string): number[];
  decode(ids: readonly number[]): string;
  /** The id of a string that is always one token. */
  specialId(text: string): number;
};

const FIRST_SPECIAL = 256;

/** Their ids follow those of the bytes. */
export const SPECIALS = [
  "<|endoftext|>",
  "<|im_start|>",
  "<|im_end|>",
  "<tool_call>",
  "</tool_call>",
  "<tool_response>",
  "</tool_response>",
  "<think>",
  "</think>",
];

const SPLIT = new RegExp(`(${SPECIALS.map(quote).join("|")})`);

/** Every byte of UTF-8 is an id, and so are the few strings that a chat template is made of. */
export const byteTokenizer: SimulatedTokenizer = {
  vocabSize: FIRST_SPECIAL + SPECIALS.length,
  encode(text) {
    const ids: number[] = [];
    for (const [index, piece] of text.split(SPLIT).entries()) {
      if (index % 2 === 1) ids.push(byteTokenizer.specialId(piece));
      else for (const byte of Buffer.from(piece)) ids.push(byte);
    }
    return ids;
  },
  decode(ids) {
    const parts: Uint8Array[] = [];
    let from = 0;
    const flush = (end: number) => {
      if (end > from) parts.push(Uint8Array.from(ids.slice(from, end)));
    };
    for (const [index, id] of ids.entries()) {
      if (id < FIRST_SPECIAL) continue;
      flush(index);
      parts.push(Buffer.from(SPECIALS[id - FIRST_SPECIAL] ?? ""));
      from = index + 1;
    }
    flush(ids.length);
    return Buffer.concat(parts).toString();
  },
  specialId: (text) => FIRST_SPECIAL + SPECIALS.indexOf(text),
};

function quote(text: string): string {
  return text.replace(/[|\\.]/g, "\\$&");
}
