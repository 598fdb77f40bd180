import { expect, test } from "bun:test";
import { Tokenizer as HfTokenizer } from "@huggingface/tokenizers";
import { readModelFolder } from "../../../src/inference/tokens/model-folder.ts";
import { folderOf, modelOf } from "./models.ts";
import { randomOf } from "./simulated-engine.ts";

const ALPHABETS = [
  "abcdefghijklmnopqrstuvwxyz",
  "aab",
  " \n\t",
  "!@#$%^&*()-+=[]{}<>|_./\\\"'",
  "0123456789",
  "aä字🙂e\u0301\u0000\u200d\ufffd",
  "the in an er re  \n_=().self",
].map((text) => Array.from(text));

/** Anything but what a tokenizer is trained on, and what it is. */
function randomText(random: () => number): string {
  const pick = <T>(list: T[]) => list[Math.floor(random() * list.length)] as T;
  const parts = Array.from({ length: 1 + Math.floor(random() * 4) }, () => {
    const alphabet = pick(ALPHABETS);
    const length = Math.floor(random() ** 3 * 400);
    return Array.from({ length }, () => pick(alphabet)).join("");
  });
  return parts.join(pick(["", " ", "\n", "<|im_end|>"]));
}

test.each(["qwen3", "mistral_nemo", "deepseek_v3"] as const)(
  "text is cut as the tokenizers library cuts it, with %s",
  async (family) => {
    const { tokenizer, config } = await readModelFolder(folderOf(family));
    const library = new HfTokenizer(tokenizer, config);
    const ours = (await modelOf(family)).tokenizer;
    const random = randomOf(7);
    for (let round = 0; round < 120; round++) {
      const text = randomText(random);
      const ids = library.encode(text, { add_special_tokens: false }).ids;
      if (!Bun.deepEquals(ours.encode(text), ids))
        expect([text, ours.encode(text)]).toEqual([text, ids]);
    }
  },
);
