import type { Arguments } from "./arguments.ts";

/** What an argument has to be; `relation` may be left out. */
type Shape = "text" | "texts" | "count" | "relation";

const REPEATED = { prompt_to_repeat: "text" } as const;
const FREQUENT = { keyword: "text", frequency: "count", relation: "relation" } as const;
const LETTERS = { letter: "text", let_frequency: "count", let_relation: "relation" } as const;

/** The arguments of each instruction that has some, but for a language. */
export const NEEDED: Record<string, Record<string, Shape>> = {
  "keywords:existence": { keywords: "texts" },
  "keywords:frequency": FREQUENT,
  "keywords:forbidden_words": { forbidden_words: "texts" },
  "keywords:letter_frequency": LETTERS,
  "length_constraints:number_sentences": { num_sentences: "count", relation: "relation" },
  "length_constraints:number_words": { num_words: "count", relation: "relation" },
  "length_constraints:number_paragraphs": { num_paragraphs: "count" },
  "length_constraints:nth_paragraph_first_word": {
    ...{ num_paragraphs: "count", nth_paragraph: "count", first_word: "text" },
  },
  "detectable_content:number_placeholders": { num_placeholders: "count" },
  "detectable_content:postscript": { postscript_marker: "text" },
  "detectable_format:number_bullet_lists": { num_bullets: "count" },
  "detectable_format:number_highlighted_sections": { num_highlights: "count" },
  "detectable_format:multiple_sections": { section_spliter: "text", num_sections: "count" },
  "combination:repeat_prompt": REPEATED,
  "startend:end_checker": { end_phrase: "text" },
  "change_case:capital_word_frequency": {
    ...{ capital_frequency: "count", capital_relation: "relation" },
  },
  "copy:copy": REPEATED,
  "copy:copying_simple": REPEATED,
  "copy:copying_multiple": { ...REPEATED, N: "count" },
  "new:copy_span_idx": { ...REPEATED, n_start: "count", n_end: "count" },
  "copy:repeat_phrase": { phrase: "text", small_n: "count" },
  "keywords:word_once": { keyword: "text" },
  "keywords:word_count_different_numbers": FREQUENT,
  "keywords:exclude_word_harder": { keyword: "text" },
  "keywords:keyword_specific_position": { keyword: "text", n: "count", m: "count" },
  "letters:letter_counting": { N: "count", relation: "relation" },
  "letters:letter_counting2": LETTERS,
  "count:lowercase_counting": { N: "count" },
  "count:count_increment_word": { keyword1: "text", keyword2: "text" },
  "count:counting_composition": { n_sent: "count", n_words: "count" },
  "first_word:first_word_answer": { first_word: "text" },
  "first_word:first_word_sent": { first_word: "text" },
  "last_word:last_word_answer": { last_word: "text" },
  "last_word:last_word_sent": { last_word: "text" },
};

const WANTED: Record<Shape, string> = {
  text: "a text that is not empty",
  texts: "a list of texts that are not empty",
  count: "a whole number of at least 0",
  relation: '"less than" or "at least"',
};

/** What an instruction lacks to be checked: without its word or number any answer would follow it. Null: nothing. */
export function lacking(id: string, args: Arguments): string | null {
  for (const [name, shape] of Object.entries(NEEDED[id] ?? {})) {
    if (!fits(shape, args[name])) return `${id} needs ${name}: ${WANTED[shape]}`;
  }
  return null;
}

function fits(shape: Shape, value: unknown): boolean {
  const isText = (one: unknown) => typeof one === "string" && one.trim() !== "";
  switch (shape) {
    case "text":
      return isText(value);
    case "texts":
      return isText(value) || (Array.isArray(value) && value.length > 0 && value.every(isText));
    case "count":
      return Number.isSafeInteger(value) && Number(value) >= 0;
    case "relation":
      return value === undefined || value === "less than" || value === "at least";
  }
}
