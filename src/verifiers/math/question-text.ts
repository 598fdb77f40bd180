const MAX_FORMULAS = 48;
const MAX_FORMULA_CHARS = 400;
const MAX_QUESTION_CHARS = 20_000;

const DELIMITED =
  /\$\$([^$]{1,2000})\$\$|(?<!\\)\$([^$]{1,2000}?)(?<!\\)\$|\\\(([\s\S]{1,2000}?)\\\)|\\\[([\s\S]{1,2000}?)\\\]|\\begin\{(?:align|equation|gather)\*?\}([\s\S]{1,2000}?)\\end/g;

/** The formulas of a question: what its delimiters enclose, and runs of arithmetic between them. */
export function formulasIn(question: string): string[] {
  const text = question.slice(0, MAX_QUESTION_CHARS);
  const set = [...text.matchAll(DELIMITED)].map(
    (match) => match.slice(1).find((part) => part !== undefined) ?? "",
  );
  const rows = set.flatMap((formula) =>
    formula.includes("\\begin{") ? [formula] : formula.split(/\\\\(?![a-z])/),
  );
  const plain = arithmeticIn(text.replace(DELIMITED, " ; ")).map(withBraces);
  const all = [...rows, ...plain].flatMap(variants);
  return [...new Set(all)]
    .filter((formula) => formula.length <= MAX_FORMULA_CHARS)
    .slice(0, MAX_FORMULAS);
}

/** What is behind and before `=` alone, and alignment marks, are not of the formula. */
function variants(formula: string): string[] {
  const plain = formula
    .replace(/&/g, "")
    .replace(/=\s*(?:\?|\\square|\\_+|_+|\\ldots|\\text\{[^{}]*\})?\s*[.,;]?\s*$/, "")
    .replace(/\?\s*$/, "");
  const bare = plain.replace(/\\text\{[^{}]*\}/g, ",");
  return bare === plain ? [plain] : [plain, bare];
}

/** Without LaTeX `2^10` is the tenth power. */
function withBraces(formula: string): string {
  return formula.replace(/\^(-?\d{2,}|-\d)/g, "^{$1}");
}

const MATH_WORD = /[\d\\^=<>]|^[-+*/()]+$|^\(?-?[b-hj-zB-HJ-Z]\)?[,.]?$/;
const ORDINARY = /[a-zA-Z]{4,}/;

function arithmeticIn(text: string): string[] {
  const runs: string[] = [];
  let run: string[] = [];
  for (const word of text.split(/\s+/)) {
    const bare = word.replace(/[.,;:?!]+$/, "");
    const math =
      bare !== "" && MATH_WORD.test(bare) && !ORDINARY.test(bare.replace(/\\[a-zA-Z]+|sqrt/g, ""));
    if (math) run.push(bare);
    if ((!math || bare !== word) && run.length > 0) {
      runs.push(run.join(" "));
      run = [];
    }
  }
  if (run.length > 0) runs.push(run.join(" "));
  return runs;
}
