import { ServiceError } from "../errors.ts";
import { FIGURES, type Figure, type Interval, type RewardBounds } from "./reward-bounds.ts";

/** Whether a group teaches anything: true, false, or null as long as the rewards to come may decide it. */
export type RewardRule = (bounds: RewardBounds) => boolean | null;

export const MAX_RULE_LENGTH = 500;

type NumberTerm = { kind: "number"; of: (bounds: RewardBounds) => Interval };
type TruthTerm = { kind: "truth"; of: RewardRule };
type Term = NumberTerm | TruthTerm;

const TOKEN = /\s*(?:(\d+(?:\.\d+)?(?:e-?\d+)?|\.\d+)|([a-z_]+)|(&&|\|\||[<>=!]=|[-+*/()<>!]))/y;

/**
 * A rule on a group's rewards, such as `spread > 0` or `mean >= 0.1 && mean <= 0.9 && above(0.5) > 0`.
 * It knows numbers, the figures `n min max mean sum std spread`, `above(x)` (the share of rewards above x),
 * `+ - * /`, comparisons, `&& || !` and parentheses; nothing else, and nothing of it is ever executed as
 * code. Evaluated on bounds it says what is already certain.
 *
 * @throws ServiceError `invalid_field`
 */
export function parseRule(text: string): RewardRule {
  if (text.length > MAX_RULE_LENGTH) throw wrong(`it is longer than ${MAX_RULE_LENGTH} characters`);
  const parser = new Parser(tokenize(text));
  const term = parser.whole();
  if (term.kind !== "truth")
    throw wrong("it is a number, not a condition; compare it with another");
  return term.of;
}

function tokenize(text: string): string[] {
  const tokens: string[] = [];
  const pattern = new RegExp(TOKEN);
  const end = text.trimEnd().length;
  while (pattern.lastIndex < end) {
    const at = pattern.lastIndex;
    const match = pattern.exec(text);
    if (!match) throw wrong(`it can't be read from "${text.slice(at, at + 20).trim()}" on`);
    tokens.push(match[0].trim());
  }
  return tokens;
}

/** Recursive descent; each method reads one level of precedence. */
class Parser {
  readonly #tokens: string[];
  #at = 0;

  constructor(tokens: string[]) {
    this.#tokens = tokens;
  }

  whole(): Term {
    const term = this.#or();
    const rest = this.#tokens[this.#at];
    if (rest !== undefined) throw wrong(`"${rest}" is not expected there`);
    return term;
  }

  #take(...wanted: string[]): string | null {
    const token = this.#tokens[this.#at];
    if (token === undefined || !wanted.includes(token)) return null;
    this.#at++;
    return token;
  }

  #or(): Term {
    let left = this.#and();
    while (this.#take("||")) left = either(truth(left), truth(this.#and()));
    return left;
  }

  #and(): Term {
    let left = this.#comparison();
    while (this.#take("&&")) left = not(either(not(truth(left)), not(truth(this.#comparison()))));
    return left;
  }

  #comparison(): Term {
    const left = this.#sum();
    const operator = this.#take("<", "<=", ">", ">=", "==", "!=");
    return operator === null ? left : compare(operator, number(left), number(this.#sum()));
  }

  #sum(): Term {
    let left = this.#product();
    for (let sign = this.#take("+", "-"); sign !== null; sign = this.#take("+", "-")) {
      left = arithmetic(sign, number(left), number(this.#product()));
    }
    return left;
  }

  #product(): Term {
    let left = this.#unary();
    for (let sign = this.#take("*", "/"); sign !== null; sign = this.#take("*", "/")) {
      left = arithmetic(sign, number(left), number(this.#unary()));
    }
    return left;
  }

  #unary(): Term {
    if (this.#take("!")) return not(truth(this.#unary()));
    if (this.#take("-")) return arithmetic("-", constant(0), number(this.#unary()));
    return this.#atom();
  }

  #atom(): Term {
    const token = this.#tokens[this.#at++];
    if (token === undefined) throw wrong("it ends too early");
    if (token === "(") {
      const inner = this.#or();
      this.#close();
      return inner;
    }
    if (/^[\d.]/.test(token)) return constant(Number(token));
    if (token === "above") return this.#above();
    if (FIGURES.includes(token as Figure)) {
      return { kind: "number", of: (bounds) => bounds[token as Figure] };
    }
    throw wrong(
      `"${token}" is not expected there; the figures are ${FIGURES.join(", ")}, above(x)`,
    );
  }

  #above(): NumberTerm {
    if (!this.#take("(")) throw wrong("above needs its limit: above(0.5)");
    const limit = Number(this.#tokens[this.#at++]);
    if (!Number.isFinite(limit)) throw wrong("above takes a number: above(0.5)");
    this.#close();
    return { kind: "number", of: (bounds) => bounds.above(limit) };
  }

  #close(): void {
    if (!this.#take(")")) throw wrong('a ")" is missing');
  }
}

function truth(term: Term): TruthTerm {
  if (term.kind === "truth") return term;
  throw wrong("a number stands where a condition is needed; compare it with another");
}

function number(term: Term): NumberTerm {
  if (term.kind === "number") return term;
  throw wrong("a condition stands where a number is needed");
}

function constant(value: number): NumberTerm {
  return { kind: "number", of: () => ({ lo: value, hi: value }) };
}

function not(term: TruthTerm): TruthTerm {
  const of: RewardRule = (bounds) => {
    const value = term.of(bounds);
    return value === null ? null : !value;
  };
  return { kind: "truth", of };
}

function either(left: TruthTerm, right: TruthTerm): TruthTerm {
  const of: RewardRule = (bounds) => {
    const values = [left.of(bounds), right.of(bounds)];
    if (values.includes(true)) return true;
    return values.includes(null) ? null : false;
  };
  return { kind: "truth", of };
}

function compare(operator: string, left: NumberTerm, right: NumberTerm): TruthTerm {
  const above = (a: NumberTerm, b: NumberTerm, orEqual: boolean): TruthTerm => ({
    kind: "truth",
    of: (bounds) => isAbove(a.of(bounds), b.of(bounds), orEqual),
  });
  switch (operator) {
    case ">":
      return above(left, right, false);
    case ">=":
      return above(left, right, true);
    case "<":
      return above(right, left, false);
    case "<=":
      return above(right, left, true);
  }
  const different = either(above(left, right, false), above(right, left, false));
  return operator === "!=" ? different : not(different);
}

function isAbove(a: Interval, b: Interval, orEqual: boolean): boolean | null {
  if (a.lo > b.hi || (orEqual && a.lo === b.hi)) return true;
  if (a.hi < b.lo || (!orEqual && a.hi === b.lo)) return false;
  return null;
}

function arithmetic(sign: string, left: NumberTerm, right: NumberTerm): NumberTerm {
  const of = (bounds: RewardBounds) => combine(sign, left.of(bounds), right.of(bounds));
  return { kind: "number", of };
}

const ANYTHING: Interval = { lo: Number.NEGATIVE_INFINITY, hi: Number.POSITIVE_INFINITY };

function combine(sign: string, a: Interval, b: Interval): Interval {
  if (sign === "+") return { lo: a.lo + b.lo, hi: a.hi + b.hi };
  if (sign === "-") return { lo: a.lo - b.hi, hi: a.hi - b.lo };
  if (sign === "/" && b.lo <= 0 && b.hi >= 0) return ANYTHING;
  const apply = (x: number, y: number) => (sign === "*" ? x * y : x / y);
  const corners = [a.lo, a.hi].flatMap((x) => [apply(x, b.lo), apply(x, b.hi)]);
  if (corners.some(Number.isNaN)) return ANYTHING;
  return { lo: Math.min(...corners), hi: Math.max(...corners) };
}

function wrong(why: string): ServiceError {
  return new ServiceError("invalid_field", `the rule can't be used: ${why}`, {
    field: "informative.rule",
    mend: 'write a condition such as "spread > 0" or "mean > 0.1 && mean < 0.9"',
  });
}
