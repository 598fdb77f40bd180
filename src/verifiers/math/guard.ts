/**
 * What may reach the parser: the grammar of arithmetic and nothing else. Unbalanced brackets, set
 * braces and `\|` send its backtracking into exponential time (16 of `[1,2)` in a row: half a second),
 * so brackets must match here first, and what is not arithmetic is split off before.
 */
const COMMANDS = new Set(
  (
    "frac sqrt binom cdot pi infty circ sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh " +
    "ln log lg exp lfloor rfloor lceil rceil sum prod min max gcd overline " +
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho " +
    "sigma tau phi varphi chi psi omega Gamma Delta Theta Lambda Xi Sigma Phi Psi Omega ell"
  ).split(" "),
);

const MAX_TOKENS = 400;
const MAX_DEPTH = 24;
const MAX_BARS = 6;
const MAX_WORD = 3;

const CLOSING: Record<string, string> = {
  "(": ")",
  "{": "}",
  "[": "]",
  "\\lfloor": "\\rfloor",
  "\\lceil": "\\rceil",
};

const TOKEN = /\\[a-zA-Z]+|\d+(?:\.\d*)?|[A-Z]{2,}|[a-zA-Z]|[-+/^_!|(){}[\],='%]| /y;

/** `{5}{2}` is set as 52, and read as a product. */
const PARTED_DIGITS = /(?:^|[-+=(\d])\{\d+\}\s*\{?\d/;

/** The text as the parser may read it, or null where it is not plain arithmetic of bounded size. */
export function guardedLatex(raw: string): string | null {
  // The parser would read `2\cdot10^3` as the number 2000.
  const text = raw.replace(/\\cdot ?10\^/g, "\\cdot(10)^");
  const tokens = tokenise(text);
  if (tokens === null || !balanced(tokens)) return null;
  if (tokens.filter((token) => token === "|").length > MAX_BARS) return null;
  if (hasWord(tokens) || PARTED_DIGITS.test(text)) return null;
  const alone = tokens.filter((token) => token !== " ").length === 1;
  return tokens
    .map((token) => (/^[A-Z]{2,}$/.test(token) ? capitals(token, alone) : token))
    .join("");
}

/** `AB` is a name, and `BA` another one; in `nRT` and `2GM/r` capitals are factors. */
function capitals(run: string, alone: boolean): string {
  return alone || run.length > MAX_WORD ? `\\mathrm{${run}}` : run;
}

function tokenise(text: string): string[] | null {
  const tokens: string[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.length) {
    const token = TOKEN.exec(text)?.[0];
    if (token === undefined || tokens.length >= MAX_TOKENS) return null;
    if (token.startsWith("\\") && !COMMANDS.has(token.slice(1))) return null;
    if (token === "'" || token === "%") return null;
    if (token === " " && partsNumbers(tokens)) return null;
    tokens.push(token);
  }
  return tokens;
}

/** A blank after a digit is left only between two numbers: `3 4` is no product, `\\log_2 8` is fine. */
function partsNumbers(tokens: string[]): boolean {
  const before = tokens.at(-2);
  return /^\d/.test(tokens.at(-1) ?? "") && before !== "_" && before !== "^";
}

/** Square brackets belong to `\sqrt[3]{x}` only; elsewhere they are intervals. */
function balanced(tokens: string[]): boolean {
  const open: string[] = [];
  for (const [at, token] of tokens.entries()) {
    if (token === "[" && tokens[at - 1] !== "\\sqrt") return false;
    const closing = Object.hasOwn(CLOSING, token) ? CLOSING[token] : undefined;
    if (closing !== undefined) open.push(closing);
    else if (Object.values(CLOSING).includes(token) && open.pop() !== token) return false;
    if (open.length > MAX_DEPTH) return false;
  }
  return open.length === 0;
}

/** Four letters in a row are a word. Read as a product, an anagram would equal it. */
function hasWord(tokens: string[]): boolean {
  let letters = 0;
  for (const token of tokens) {
    letters = /^[a-zA-Z]$/.test(token) ? letters + 1 : 0;
    if (letters > MAX_WORD) return true;
  }
  return false;
}
