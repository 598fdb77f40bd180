import { FOREIGN_LETTERS, type Option, plainText } from "./choice-options.ts";

/** Other options in what follows a choice, named side by side: `B`, `B, C or D`, `London`, `the second one`. */
export type Mention = {
  letters: string[];
  by: "letter" | "text" | "order";
  index: number;
  before: string;
  after: string;
};

type Named = { letter: string; by: Mention["by"]; start: number; end: number };

const ORDINALS = ["first|1st", "second|2nd", "third|3rd", "fourth|4th", "fifth|5th", "sixth|6th"];
const CARDINALS = ["one|1", "two|2", "three|3", "four|4", "five|5", "six|6"];
const OTHER = "last|other|others|former|latter|next|previous";
const THING = "(?:option|choice|one|answer|alternative|letter)s?";
const ORDINAL = new RegExp(
  `(?<!\\p{L})(?:the\\s+)?(?:(${[...ORDINALS, OTHER].join("|")})(?:\\s+${THING}|(?=\\s*(?:$|[.,;!?)]|also|too|as well)))|(?:option|choice|number|no\\.)\\s+(${CARDINALS.join("|")}))(?![\\p{L}\\p{N}])`,
  "giu",
);
/** What follows `A` or `I` where it is a letter; before other small words it is an article or a pronoun. */
const AFTER_LETTER =
  /^\s+(?:is|are|was|were|being|and|or|nor|also|too|both|seems?|looks?|works|fits|holds|applies|as well)(?!\p{L})/u;
const AFTER_A = /^\s+(?:can|could|may|might|would|does|has|must)(?!\p{L})/u;
const JOINT =
  /^[\s)\]"'”’]*(?:[,;/&+|]\s*)?(?:(?:and\/or|and|or|nor|both)(?!\p{L}))?[\s(["'“‘]*(?:(?:the\s+)?(?:option|choice|answer)\s+)?[([]?$/iu;
const LEAD =
  "[\\s,:(\"'“‘\\[]*(?:(?:the|either|with|that|it'?s|it is|to be)\\s+)*(?:(?:option|choice|answer|letter)\\s+)?[([]?$";
const DENIES = new RegExp(
  `(?<!\\p{L}|(?:if|why|whether or|or)\\s)(?:not|never|rather than|instead of|unlike|than|neither|nor|except|excluding|without|n['’]t)${LEAD}`,
  "iu",
);
const HARDLY = "(?:\\s+(?:clearly|all|both|simply|just|also|obviously|definitely|therefore|thus))*";
const IS_DENIED = new RegExp(
  `^[)\\]"'”’]*\\s+(?:is|are|was|were|seems?|looks?|can|could|would|must be|does|do|did)${HARDLY}\\s*(?:wrong|incorrect|false|not(?!\\s+(?:only|just|wrong|false|incorrect))|n['’]t|never|impossible|invalid|untrue|out|eliminated|excluded|ruled out)(?!\\p{L})|^[)\\]"'”’]*\\s+(?:is|are|was|were|can|could|would|does|do)n['’]t(?!\\p{L})|^[)\\]"'”’]*\\s+(?:cannot|fails?)(?!\\p{L})`,
  "iu",
);
const OFFERS = new RegExp(
  `(?:(?<!\\p{L})(?:or|and|maybe|perhaps|possibly|alternatively|also|plus|else|otherwise|well as|if not|unless|even|probably|could be|may be|might be)|[/&])${LEAD}`,
  "iu",
);
const CHOOSES = new RegExp(
  `(?<!\\p{L})(?:is|be|are|choose|pick|select|say|prefer|conclude)${LEAD}`,
  "iu",
);
const RIGHT =
  "(?:right|correct|true|valid|possible|plausible|likely|fine|good|better|best|acceptable|ok|okay|(?:an|the|my)\\s+(?:\\p{L}+\\s+)?(?:answer|choice|option))";
const IS_RIGHT = new RegExp(
  `^[)\\]"'”’]*\\s*(?:(?:(?:is|are|was|were|being|seems?|looks?|sounds?|(?:may|might|could|can|would|must)(?:\\s+well)?\\s+be)(?:\\s+(?:also|just|equally|probably|still|as|too|both|even|quite|very|really|perfectly))*\\s+${RIGHT})|(?:also|too|as well)|(?:works?|fits?|holds?|applies)|(?:may|might|could|can)\\s*(?:be)?\\s*(?:$|[.,;!?)])|(?:is|are|was|were|being)\\s+(?:also|too|as well))(?!\\p{L})`,
  "iu",
);

/** @param letter the option chosen, whose own mentions are none */
export function mentionsOf(text: string, letter: string, options: readonly Option[]): Mention[] {
  const groups: Named[][] = [];
  for (const named of namedIn(text, options)) {
    const group = groups.at(-1);
    const last = group?.at(-1);
    if (last && last.by === named.by && JOINT.test(text.slice(last.end, named.start))) {
      group?.push(named);
    } else groups.push([named]);
  }
  return groups.flatMap((group) => {
    const [first, last] = [group[0], group.at(-1)];
    const letters = group.map((one) => one.letter).filter((other) => other !== letter);
    if (!first || !last || letters.length === 0) return [];
    const before = text.slice(Math.max(0, first.start - 60), first.start);
    const after = text.slice(last.end, last.end + 80);
    return { letters, by: first.by, index: first.start, before, after };
  });
}

/** Whether it says that these are not chosen: `not B`, `B and C are wrong`. */
export function isDenied({ before, after }: Mention): boolean {
  return DENIES.test(before) || IS_DENIED.test(after);
}

/** Whether these are offered or said to be right as well. */
export function isAsserted({ by, before, after }: Mention): boolean {
  if (OFFERS.test(before) || IS_RIGHT.test(after)) return true;
  if (by === "text") return /^[\s,;/&+([–—-]*$/.test(before) && /^\s*(?:$|[.,;/&)])/.test(after);
  return CHOOSES.test(before) || (by === "letter" && /^[)\]"'”’]*\s*[.!?]*$/.test(after));
}

function namedIn(text: string, options: readonly Option[]): Named[] {
  const found: Named[] = [];
  const lower = text.toLowerCase();
  const add = (one: Named) => {
    if (!found.some(({ start, end }) => one.start < end && start < one.end)) found.push(one);
  };
  const texts = options
    .map((option) => ({ letter: option.letter, own: plainText(option.text).toLowerCase() }))
    .filter(({ own }) => own !== "" && labelOf(own, "", options) === null)
    .sort((a, b) => b.own.length - a.own.length);
  for (const { letter, own } of texts) {
    const pattern = new RegExp(`(?<![\\p{L}\\p{N}])${RegExp.escape(own)}(?![\\p{L}\\p{N}])`, "gu");
    for (const { index } of lower.matchAll(pattern)) {
      add({ letter, by: "text", start: index, end: index + own.length });
    }
  }
  for (const match of text.matchAll(ORDINAL)) {
    const words = (match[1] ?? match[2] ?? "").toLowerCase();
    const at = [ORDINALS, CARDINALS]
      .map((list) => list.findIndex((one) => one.split("|").includes(words)))
      .find((index) => index >= 0);
    const letter = at === undefined ? "?" : (options[at]?.letter ?? "?");
    add({ letter, by: "order", start: match.index, end: match.index + match[0].length });
  }
  const label = /(?<![\p{L}\p{N}_'’])[\p{L}\p{N}]{1,3}(?![\p{L}\p{N}_]|['’]\p{L})/gu;
  for (const match of text.matchAll(label)) {
    const after = text.slice(match.index + match[0].length);
    const letter = labelOf(match[0], after, options);
    if (letter !== null) {
      add({ letter, by: "letter", start: match.index, end: match.index + match[0].length });
    }
  }
  return found.sort((a, b) => a.start - b.start);
}

/** A small letter is a label too, but for those that are words. */
function labelOf(word: string, after: string, options: readonly Option[]): string | null {
  const letter = FOREIGN_LETTERS[word] ?? word.toUpperCase();
  if (!options.some((option) => option.letter === letter)) return null;
  const isAlone = AFTER_LETTER.test(after) || (word === "A" && AFTER_A.test(after));
  if (/^[AI]$/.test(word) && /^\s+\p{Ll}/u.test(after) && !isAlone) return null;
  const isSmall = word !== letter && FOREIGN_LETTERS[word] === undefined;
  if (
    isSmall &&
    /^(?:[aei]|\p{L}{2,})$/u.test(word) &&
    !/^\s*(?:$|[.,;!?)\]/]|or(?!\p{L}))/u.test(after)
  )
    return null;
  return letter;
}
