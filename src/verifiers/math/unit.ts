import { NotComputable } from "./functions.ts";
import { isNoun, measureOf, singular } from "./unit-words.ts";

/** What stands behind a number: a measure (`cm^2`, `km/h`), and the things that it counts. */
export type Unit = { measure: string; nouns: string[] };

export type Measured = { body: string; unit: Unit | null };

/** Words that the question or the truth use, which may therefore stand behind a number. */
export type Words = ReadonlySet<string>;

const DEGREES = /\^\{?\\circ\}?(?:\\text\{\s*([CF])\s*\}|([CF]))?$/;
const TAIL = /^(?:\\text\{[^{}]*\}|\^\{?-?\d\}?|\/[a-zA-Z]{0,3}|\\cdot ?|[. ])+$/;

/**
 * Splits the unit off a normalised number or expression: `5\text{cm}^{2}` is `5` and `cm^2`. Every word of a unit is
 * known, or one that the question uses.
 * @throws NotComputable where a word behind the number is neither.
 */
export function splitUnit(text: string, words: Words): Measured {
  const degrees = DEGREES.exec(text);
  if (degrees && degrees.index > 0 && !/\\(?:sin|cos|tan|cot|sec|csc)/.test(text)) {
    const scale = degrees[1] ?? degrees[2] ?? "";
    return { body: text.slice(0, degrees.index), unit: { measure: `degree${scale}`, nouns: [] } };
  }
  const at = text.indexOf("\\text{");
  if (at <= 0 || !/[\d)}a-zA-Z%]$/.test(text.slice(0, at))) return { body: text, unit: null };
  const tail = text.slice(at);
  if (!TAIL.test(tail)) return { body: text, unit: null };
  return { body: text.slice(0, at), unit: unitOf(tail, words) };
}

const TOKEN = /[a-z°]+|\^\{?-?\d\}?|\/|[^\s{}\\.,()·-]/g;
const FILLERS = new Set("of the an each in total per a all together".split(" "));

function unitOf(tail: string, words: Words): Unit {
  const text = tail
    .replace(/\\text\{([^{}]*)\}/g, " $1 ")
    .replace(/\\cdot/g, " ")
    .toLowerCase();
  const powers = new Map<string, number>();
  const nouns: string[] = [];
  let sign = 1;
  let next = 1;
  let last: string | null = null;
  for (const token of text.replace(/([ap])\.\s?m\./g, "$1m").match(TOKEN) ?? []) {
    const power = /^\^\{?(-?\d)/.exec(token)?.[1];
    const [measure, exponent] = measureOf(token);
    if (token === "/" || token === "per") sign = -1;
    else if (token === "square" || token === "sq") next = 2;
    else if (token === "cubic" || token === "cu") next = 3;
    else if (power !== undefined && last !== null) raise(powers, last, Number(power));
    else if (/^(?:squared|cubed)$/.test(token) && last !== null) {
      raise(powers, last, token === "squared" ? 2 : 3);
    } else if (measure !== null) {
      if (powers.has(measure)) continue;
      powers.set(measure, sign * next * exponent);
      last = measure;
      next = 1;
    } else if (isNoun(token, words)) nouns.push(singular(token));
    else if (!FILLERS.has(token)) throw new NotComputable(`"${token}" behind the number is unread`);
  }
  const parts = [...powers]
    .sort()
    .map(([name, power]) => (power === 1 ? name : `${name}^${power}`));
  return { measure: parts.join(" "), nouns };
}

function raise(powers: Map<string, number>, name: string, power: number): void {
  powers.set(name, Math.sign(powers.get(name) ?? 1) * power);
}

/** Whether two units may be the same. One that is missing is understood. */
export function sameUnit(truth: Unit | null, answer: Unit | null): boolean {
  if (truth === null || answer === null) return true;
  if (
    truth.measure !== "" &&
    answer.measure !== "" &&
    !sameMeasure(truth.measure, answer.measure)
  ) {
    return false;
  }
  if (truth.nouns.length === 0 || answer.nouns.length === 0) return true;
  return truth.nouns.some((noun) => answer.nouns.includes(noun));
}

/** `square units` is a square of any length. */
function sameMeasure(a: string, b: string): boolean {
  if (a === b) return true;
  const [generic, other] = /^unit\b/.test(a) ? [a, b] : [b, a];
  return (
    /^unit(?:\^\d)?$/.test(generic) &&
    /^[a-z]+(?:\^\d)?$/.test(other) &&
    powerOf(generic) === powerOf(other)
  );
}

function powerOf(measure: string): string {
  return measure.split("^")[1] ?? "1";
}
