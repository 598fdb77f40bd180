/**
 * Why our verdict is not the one that a public grader's test expects, by the key that `bench verify-math` prints: the
 * start of SHA-256 over truth, line end and answer.
 */
export const DISAGREEMENTS: Record<string, string> = {
  "923b2910af98": "two sides of the answer's equation differ; its last one alone is the truth",
  "05e6f3fbea76": "the decimal behind the answer's exact value is not its own",
  c92f8f7e6099: "the decimal behind the answer's exact value is not its own",
  d5d9eed10af3:
    "the truth gives an unknown command and a name one value; it is no answer to anything",
  "04b72af54c8f": "two sides of the answer's equation differ; its last one alone is the truth",
  "2ee36796808f": "the answer stands behind the last box, in a sentence; the box is another number",
  "12b22a44811f": "the test takes two different numbers for equal",
};
