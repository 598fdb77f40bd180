/** Units whose confusion is a wrong answer, by every spelling. Other trailing words are only dropped. */
const SPELLINGS: Record<string, string> = {
  mm: "mm millimeter millimetre",
  cm: "cm centimeter centimetre",
  m: "m meter metre",
  km: "km kilometer kilometre",
  in: "in inch inche",
  ft: "ft foot feet",
  yd: "yd yard",
  mi: "mi mile",
  g: "g gram",
  kg: "kg kilogram",
  s: "s sec second",
  min: "min minute",
  h: "h hr hour",
  day: "day",
  week: "week",
  month: "month",
  year: "yr year",
  cent: "cent",
  dollar: "dollar usd",
};

const CANONICAL = new Map(
  Object.entries(SPELLINGS).flatMap(([unit, names]) =>
    names.split(" ").map((name) => [name, unit]),
  ),
);

/** Words that may follow a number without `\text`; one letter alone would be a variable. */
const PLAIN_WORDS = new Set([
  ...[...CANONICAL.keys()].filter((name) => name.length > 1),
  ..."unit square sq cubic cu degree per euro point way people person student mph kmh liter litre".split(
    " ",
  ),
  ..."integer number time combination solution triangle ohm volt coin ball card game apple".split(
    " ",
  ),
]);

/** Words after a number that change it or what is said of it, so that they are no unit. */
const MEANINGFUL =
  /(?:hundred|thousand|million|billion|dozen|half|third|more|less|most|least|not|or|and|if|when|for|mod)/;

/** Splits a trailing unit off a normalised answer: `5\text{cm}` is `5` and `cm`, `60^\circ` is `60`. */
export function splitUnit(text: string): { body: string; unit: string | null } {
  const degrees = /\^?\{?\\circ\}?$/.exec(text);
  if (degrees && !/\\(?:sin|cos|tan|cot|sec|csc)/.test(text)) {
    return { body: text.slice(0, degrees.index), unit: null };
  }
  return splitTextUnit(text) ?? splitPlainUnit(text) ?? { body: text, unit: null };
}

function splitTextUnit(text: string): { body: string; unit: string | null } | null {
  const at = text.lastIndexOf("\\text{");
  if (at <= 0) return null;
  const tail = /^\\text\{([^{}]*)\}(?:\^\{?\d\}?)?$/.exec(text.slice(at));
  const body = text.slice(0, at);
  if (!tail || body.includes("\\text{") || !/[\d)}a-zA-Z]$/.test(body)) return null;
  const words = tail[1] ?? "";
  return MEANINGFUL.test(words) ? null : { body, unit: canonicalUnit(words) };
}

function splitPlainUnit(text: string): { body: string; unit: string | null } | null {
  let at = text.length;
  while (at > 0 && /[a-zA-Z.]/.test(text.charAt(at - 1))) at--;
  if (at === 0 || at === text.length || !/[\d)}]/.test(text.charAt(at - 1))) return null;
  const words = text.slice(at).toLowerCase();
  if (!madeOfPlainWords(words)) return null;
  return { body: text.slice(0, at), unit: canonicalUnit(words) };
}

/** Blanks are gone, so `squareunits` is read word by word, the longest first. */
function madeOfPlainWords(text: string): boolean {
  let rest = text.slice(0, 60);
  while (rest !== "") {
    let length = Math.min(rest.length, 12);
    while (length > 1 && !PLAIN_WORDS.has(singular(rest.slice(0, length)))) length--;
    if (length <= 1) return false;
    rest = rest.slice(length);
  }
  return text.length <= 60;
}

function canonicalUnit(words: string): string | null {
  const word = words.trim().toLowerCase().replace(/[.\s]/g, "");
  return CANONICAL.get(word) ?? CANONICAL.get(singular(word)) ?? null;
}

function singular(word: string): string {
  return word.length > 2 && word.endsWith("s") ? word.slice(0, -1) : word;
}
