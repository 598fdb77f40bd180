export type Option = { letter: string; text: string };

/** The letter of the one option that an answer names; `several` where it names more, or takes its choice back. */
export type Choice = { letter: string } | "several" | null;

/** Letters that multilingual rows use for A to D. */
const FOREIGN_LETTERS: Record<string, string> = {
  ...{ أ: "A", ب: "B", ج: "C", د: "D" },
  ...{ অ: "A", ব: "B", ড: "C", ঢ: "D" },
};

const SET_AS_TEXT =
  /\\(?:text|math)(?:bf|it|rm|sf|tt|normal|up)?(?![a-zA-Z])|\\(?:boxed|fbox|mbox|hbox|emph|bf|it|rm|sf|tt|em|underline|boldsymbol|bm|left|right|displaystyle)(?![a-zA-Z])|\\[()[\],;:! ]/g;
const BEFORE_LABEL =
  /^(?:(?:so|thus|therefore|the|my|final|correct|best|right|answer|option|choice|letter|it|that|this|is|would|must|be|clearly|definitely|it's|i think|i believe|i(?: would|'d)? (?:choose|pick|select|say|go with)|probably|most likely|likely)(?![\p{L}\p{N}'])[\s:,]*)+/iu;
const LABEL = /^([([{<"'“‘]*)([\p{L}\p{N}]{1,3})(?![\p{L}\p{N}_]|['’]\p{L})([)\]}>"'”’]*)/u;
/** Of a quotation or a list. */
const LIST_MARK = /^(?:[>•-]|\d{1,2}[.)])\s+(?=\S)/;
const SEPARATOR = /^\s*[.:,;=!?–—-]+\s*/;
const CONFIRMS =
  /^[([]?(?:is|because|since|as|for|due|given|from|by|not|rather|instead|unlike|and not|but not)(?!\p{L})/iu;
const REASON = /^\W*(?:because|since|as|for|due|given|from|by)(?!\p{L})/iu;
const REJECTS_OTHERS = /^\W*(?:not|rather than|instead of|unlike|and not|but not)(?!\p{L})/iu;
const DENIED =
  /^\W*(?:(?:is|was|seems?|looks?|can|could|would|should)\s+)?(?:no|nope|not(?=\s*(?:$|[.,;!?)]|(?:(?:the|a)\s+)?(?:correct|right|true|answer|best|good|possible)))|never|wrong|incorrect|false|cannot|isn['’]t|wasn['’]t|can['’]t|couldn['’]t|wouldn['’]t|won['’]t)(?!\p{L})/iu;
const TAKEN_BACK =
  /(?<!\p{L})(?:wait|hmm+|scratch that|correction|on second thought|never ?mind|take (?:that|it) back|actually,? (?:no|not|it|the|i))(?!\p{L})/iu;
const ANOTHER =
  /(?<!\p{L})(?:or|and|maybe|perhaps|possibly)\s+(?:the\s+)?(?:first|second|third|fourth|fifth|last|other|others|former|latter|next|previous)(?!\p{L})/iu;
/** What follows `A` or `I` where it is a letter; before other small words it is an article or a pronoun. */
const AFTER_LETTER =
  /^\s+(?:is|are|was|and|or|nor|also|too|can|could|may|might|would|both|seems?|looks?)(?!\p{L})/u;

/**
 * Reads what an answer says to be chosen: a label, perhaps in brackets or behind `option`, and behind it the option's
 * own text or a reason; or an option's whole text. A label beside another one is no choice, in any spelling of a list.
 *
 * @param capitals only a capital label counts, and no text
 */
export function readChoice(answer: string, options: readonly Option[], capitals = false): Choice {
  const said = plainText(answer).replace(LIST_MARK, "");
  const text = said.replace(BEFORE_LABEL, "");
  const found = LABEL.exec(text);
  const label = found?.[2] ?? "";
  const letter = letterOf(label, options);
  if (found && letter !== null && !(capitals && label !== label.toUpperCase())) {
    const tail = text.slice(found[0].length);
    const apart = found[1] !== "" || found[3] !== "" || SEPARATOR.test(tail);
    const body = tail.replace(SEPARATOR, "").trim();
    const rest = withoutOwnText(body, letter, options);
    if (rest === null) return "several";
    if (apart || rest !== body || body === "" || CONFIRMS.test(body) || isList(tail, letter)) {
      return tailed(letter, rest, options);
    }
  }
  if (capitals) return null;
  const same = options.filter((option) => isSame(option.text, said) || isSame(option.text, text));
  if (same.length === 1 && same[0]) return { letter: same[0].letter };
  return same.length > 1 || mentioned(said, "", options).size > 1 ? "several" : null;
}

/** The one option whose text a longer text has, after the texts that hold it as a part of theirs. */
export function optionWithin(answer: string, options: readonly Option[]): Choice {
  let text = ` ${plainText(answer).toLowerCase()} `;
  if (/(?<!\p{L})(?:not|neither|nor|except|n['’]t)(?!\p{L})/u.test(text)) return null;
  const found = new Set<string>();
  const byLength = options
    .map(({ letter, text: own }) => ({ letter, own: plainText(own).toLowerCase() }))
    .sort((a, b) => b.own.length - a.own.length);
  for (const { letter, own } of byLength) {
    if (own === "") continue;
    const parts = text.split(
      new RegExp(`(?<![\\p{L}\\p{N}])${escaped(own)}(?![\\p{L}\\p{N}])`, "u"),
    );
    if (parts.length > 1) found.add(letter);
    text = parts.join(" | ");
  }
  if (found.size > 1) return "several";
  const [letter] = found;
  return letter === undefined ? null : { letter };
}

/** Without LaTeX's and Markdown's ways to set text, in one form of each character, with single blanks. */
export function plainText(text: string): string {
  return text
    .replace(SET_AS_TEXT, " ")
    .normalize("NFKC")
    .replace(/\p{Cf}/gu, "")
    .replace(/<\/?(?:b|i|strong|em|u|code|br)\s*\/?>/gi, " ")
    .replace(/[$*_`#~{}\\|]/g, (sign) => (sign === "|" ? " / " : " "))
    .replace(/\s+/g, " ")
    .replace(/([([]) | (?=[)\]])/g, "$1")
    .trim();
}

/** Whether a text that goes on from an answer names another option beside it: `or B`, `/ C`. */
export function goesOn(text: string, letter: string, options: readonly Option[]): boolean {
  const rest = plainText(text);
  return (
    /^[\s.)\]]*[([]?\s*(?:or|and|and\/or|[/&,;+])(?!\p{L})/iu.test(rest) &&
    mentioned(rest.slice(0, 40), letter, options).size > 0
  );
}

function letterOf(label: string, options: readonly Option[]): string | null {
  const upper = FOREIGN_LETTERS[label] ?? label.toUpperCase();
  return options.some((option) => option.letter === upper) ? upper : null;
}

/** What follows the option's own text. Null: another option's text stands there. */
function withoutOwnText(body: string, letter: string, options: readonly Option[]): string | null {
  const bare = body.replace(/^[("'“‘[]+/, "");
  const lower = bare.toLowerCase();
  const texts = options
    .map((option) => ({ letter: option.letter, own: plainText(option.text).toLowerCase() }))
    .filter(({ own }) => own !== "" && lower.startsWith(own) && endsThere(bare.slice(own.length)));
  const longest = Math.max(0, ...texts.map(({ own }) => own.length));
  if (longest === 0) return body;
  const named = texts.filter(({ own }) => own.length === longest);
  return named.some((option) => option.letter === letter) ? bare.slice(longest) : null;
}

function endsThere(rest: string): boolean {
  return /^\s*(?:$|[.,;:!?)\]"'”’/&–—-]|(?:or|and|because|since|as|is|not|but)(?!\p{L}))/iu.test(
    rest,
  );
}

function tailed(letter: string, rest: string, options: readonly Option[]): Choice {
  if (TAKEN_BACK.test(rest) || ANOTHER.test(rest)) return "several";
  if (REJECTS_OTHERS.test(rest) && mentioned(rest, letter, options).size > 0) return { letter };
  if (DENIED.test(rest)) return null;
  if (isList(rest, letter) || namesText(rest, letter, options)) return "several";
  const others = mentioned(rest, letter, options);
  if (others.size === 0) return { letter };
  return REASON.test(rest) && !isOffered(rest, others) ? { letter } : "several";
}

/** Whether another letter follows as in a list: `, B`, `/b`, `and C)`, ` B`. */
function isList(tail: string, letter: string): boolean {
  const next =
    /^[\s,;/&+.:()[\]–—-]*(?:(?:and\/or|and|or|nor)(?!\p{L})[\s([]*)?(?:option\s+)?([\p{L}])(?=\s*(?:$|[,;/&+)\].:?!]|(?:and|or)(?!\p{L})))/iu;
  const found = next.exec(tail)?.[1];
  return found !== undefined && (FOREIGN_LETTERS[found] ?? found.toUpperCase()) !== letter;
}

/** Labels of other options that stand alone. */
function mentioned(text: string, letter: string, options: readonly Option[]): Set<string> {
  const found = new Set<string>();
  for (const match of text.matchAll(
    /(?<![\p{L}\p{N}_'’])[\p{L}\p{N}]{1,3}(?![\p{L}\p{N}_]|['’]\p{L})/gu,
  )) {
    const label = FOREIGN_LETTERS[match[0]] ?? match[0];
    const after = text.slice(match.index + match[0].length);
    const isWord = /^[AI]$/.test(label) && /^\s+\p{Ll}/u.test(after) && !AFTER_LETTER.test(after);
    if (label !== letter && !isWord && options.some((option) => option.letter === label))
      found.add(label);
  }
  return found;
}

/** Whether one of the letters is offered as well: `or B`, `maybe C`. */
function isOffered(text: string, letters: Set<string>): boolean {
  return [...letters].some((letter) =>
    new RegExp(
      `(?<!\\p{L})(?:or|maybe|perhaps|possibly|alternatively)(?!\\p{L})[\\s,("'\\[]*(?:option\\s+)?${escaped(letter)}(?![\\p{L}\\p{N}])`,
      "iu",
    ).test(text),
  );
}

/** Whether another option's text is offered behind `or` and the like. */
function namesText(rest: string, letter: string, options: readonly Option[]): boolean {
  const lower = rest.toLowerCase();
  return options.some((option) => {
    const own = plainText(option.text).toLowerCase();
    if (option.letter === letter || own === "") return false;
    return new RegExp(
      `(?:(?<!\\p{L})(?:or|and|maybe|perhaps|possibly|alternatively)\\s|[/&])\\s*${escaped(own)}(?![\\p{L}\\p{N}])`,
      "u",
    ).test(lower);
  });
}

function isSame(option: string, said: string): boolean {
  const bare = (text: string) =>
    plainText(text)
      .toLowerCase()
      .replace(/^["'“‘([]+|["'”’)\].,;:!]+$/g, "")
      .trim();
  return bare(option) !== "" && bare(option) === bare(said);
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&");
}
