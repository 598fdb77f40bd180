import { isAsserted, isDenied, mentionsOf } from "./choice-mentions.ts";
import { FOREIGN_LETTERS, type Option, plainText } from "./choice-options.ts";

/** The letter of the one option that an answer names; `several` where it names more, or takes its choice back. */
export type Choice = { letter: string } | "several" | null;

const BEFORE_LABEL =
  /^(?:(?:so|thus|therefore|the|my|final|correct|best|right|answer|option|choice|letter|statement|it|that|this|is|would|must|be|clearly|definitely|it's|i think|i believe|let's go with|going with|i(?: would|'d|'m)? (?:choose|pick|select|say|go with|going with)|probably|most likely|likely)(?![\p{L}\p{N}'])[\s:,]*)+/iu;
const LABEL =
  /^([\p{Ps}\p{Pi}\p{Pf}<"']*)([\p{L}\p{N}]{1,3})(?![\p{L}\p{N}_]|['’]\p{L})([\p{Pe}\p{Pi}\p{Pf}>"']*)/u;
/** Of a quotation or a list. */
const LIST_MARK = /^(?:[>•-]|\d{1,2}[.)])\s+(?=\S)/;
const SEPARATOR = /^\s*(?:[.:,;=!?…·–—-]|→)+\s*/;
const CONFIRMS =
  /^[([]?(?:is|because|since|as|for|due|given|from|by|not|rather|instead|unlike|and not|but not)(?!\p{L})/iu;
const REASON = /^\W*(?:because|since|as|for|due|given|from|by)(?!\p{L})/iu;
const DENIED =
  /^\W*(?:(?:is|was|seems?|looks?|can|could|would|should)\s+)?(?:no|nope|not(?=\s*(?:$|[.,;!?)]|(?:(?:the|a)\s+)?(?:correct|right|true|answer|best|good|possible)))|never|wrong|incorrect|false|cannot|isn['’]t|wasn['’]t|can['’]t|couldn['’]t|wouldn['’]t|won['’]t)(?!\p{L})/iu;
const TAKEN_BACK =
  /(?<!\p{L})(?:wait|hmm+|scratch that|correction|on second thought|never ?mind|take (?:that|it) back|actually,? (?:no|not|it|the|i))(?!\p{L})/iu;
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
  const same = options.filter((option) => isSame(option.text, said) || isSame(option.text, text));
  const [only] = same;
  const isBare = letter !== null && isSame(label, text);
  if (!capitals && !isBare && same.length === 1 && only) return { letter: only.letter };
  if (found && letter !== null && !(capitals && label !== label.toUpperCase())) {
    const tail = text.slice(found[0].length);
    const isBracketed = /^\s*[([]/.test(tail) && !/^[ai]$/i.test(label);
    const apart = found[1] !== "" || found[3] !== "" || isBracketed || SEPARATOR.test(tail);
    const body = tail
      .replace(SEPARATOR, "")
      .replace(/^\s*\/\s*/, "")
      .trim();
    const rest = withoutOwnText(body, letter, options);
    if (rest === null) return "several";
    if (apart || rest !== body || body === "" || CONFIRMS.test(body) || isList(tail, letter)) {
      return tailed(letter, rest, options);
    }
  }
  if (capitals) return null;
  return same.length > 1 || lettersIn(said, "", options).size > 1 ? "several" : null;
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
      new RegExp(`(?<![\\p{L}\\p{N}])${RegExp.escape(own)}(?![\\p{L}\\p{N}])`, "u"),
    );
    if (parts.length > 1) found.add(letter);
    text = parts.join(" | ");
  }
  if (found.size > 1) return "several";
  const [letter] = found;
  return letter === undefined ? null : { letter };
}

/** Whether a text that goes on from an answer names another option beside it: `or B`, `/ C`. */
export function goesOn(text: string, letter: string, options: readonly Option[]): boolean {
  const rest = plainText(text);
  return (
    /^[\s.)\]]*[([]?\s*(?:or|and|and\/or|[/&,;+])(?!\p{L})/iu.test(rest) &&
    lettersIn(rest.slice(0, 40), letter, options).size > 0
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
    .filter(({ own }) => own !== "" && lower.startsWith(own))
    .filter((one) => {
      const rest = bare.slice(one.own.length);
      return one.letter === letter ? !/^[\p{L}\p{N}]/u.test(rest) : endsThere(rest);
    });
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
  if (TAKEN_BACK.test(rest)) return "several";
  const mentions = mentionsOf(rest, letter, options);
  const open = mentions.filter((mention) => !isDenied(mention));
  if (open.some(isAsserted) || isList(rest, letter)) return "several";
  const isOfOthers = mentions.some((mention) => !open.includes(mention) && mention.index < 20);
  if (!isOfOthers && DENIED.test(rest)) return null;
  return REASON.test(rest) || open.every(({ by }) => by !== "letter") ? { letter } : "several";
}

/** Whether another letter follows as in a list: `, B`, `/b`, `and C)`, ` B`. */
function isList(tail: string, letter: string): boolean {
  const next =
    /^[\s,;/&+.:()[\]–—-]*(?:(?:and\/or|and|or|nor)(?!\p{L})[\s([]*)?(?:option\s+)?([\p{L}])(?=\s*(?:$|[,;/&+)\].:?!]|(?:and|or)(?!\p{L})))/iu;
  const found = next.exec(tail)?.[1];
  return found !== undefined && (FOREIGN_LETTERS[found] ?? found.toUpperCase()) !== letter;
}

/** Labels of other options that stand alone. */
function lettersIn(text: string, letter: string, options: readonly Option[]): Set<string> {
  const found = new Set<string>();
  for (const mention of mentionsOf(text, letter, options)) {
    if (mention.by === "letter") for (const other of mention.letters) found.add(other);
  }
  return found;
}

function isSame(option: string, said: string): boolean {
  const bare = (text: string) =>
    plainText(text)
      .toLowerCase()
      .replace(/^["'“‘([]+|["'”’)\].,;:!]+$/g, "")
      .trim();
  return bare(option) !== "" && bare(option) === bare(said);
}
