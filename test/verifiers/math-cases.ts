import { type Copied, copiesOf } from "./math-questions.ts";

/** A box against a truth, with what it earns. `how` names the change that was made. */
export type MathCase = {
  how: string;
  problem: string | null;
  truth: string;
  message: string;
  right: boolean;
};

/** A drawn truth: its spellings, values that it is not, and what it is. */
type Truth = { kind: Kind; text: string; same: string[]; other: string[] };
type Kind =
  | "number"
  | "surd"
  | "expression"
  | "list"
  | "point"
  | "interval"
  | "measure"
  | "named"
  | "matrix";

export type Draw = {
  next: () => number;
  whole: (low: number, high: number) => number;
  one: <T>(list: readonly T[]) => T;
};

export function drawFrom(next: () => number): Draw {
  return {
    next,
    whole: (low, high) => low + Math.floor(next() * (high - low + 1)),
    one: (list) => list[Math.floor(next() * list.length)] as never,
  };
}

export function drawCase(draw: Draw): MathCase {
  const kinds = [number, number, surd, expression, list, point, interval, measure, named, matrix];
  if (draw.next() < 0.3) return copied(draw.one(copiesOf(draw)));
  const truth = draw.one(kinds)(draw);
  return draw.next() < 0.4 ? right(truth, draw) : wrong(truth, draw);
}

function copied({ problem, truth, copy, how }: Copied): MathCase {
  return { how: `copy: ${how}`, problem, truth, message: boxed(copy), right: false };
}

function number(draw: Draw): Truth {
  const n = draw.whole(2, 99_999);
  const d = draw.whole(2, 12);
  if (draw.next() < 0.6) {
    const same = [
      `${n}`,
      `+${n}`,
      `${n}.0`,
      grouped(n, ","),
      grouped(n, "{,}"),
      grouped(n, ",\\!"),
      `${n * d}/${d}`,
    ];
    return {
      kind: "number",
      text: `${n}`,
      same,
      other: [`${n + 1}`, `-${n}`, `${n}0`, `${n}.5`, grouped(n * 1000, ", ")],
    };
  }
  const [a, b] = reduced(draw.whole(1, 40), d);
  const same = [
    `\\frac{${a}}{${b}}`,
    `${a}/${b}`,
    `\\dfrac{${a}}{${b}}`,
    `\\frac{${a * 3}}{${b * 3}}`,
  ];
  if (a < 10 && b < 10) same.push(`\\frac${a}${b}`, `\\frac ${a} {${b}}`);
  const other = [
    `\\frac{${b}}{${a + b}}`,
    `\\frac{${a}}{${b + 1}}`,
    `${a}${b}`,
    `\\frac{-${a}}{${b}}`,
    `${a},${b}`,
  ];
  return { kind: "number", text: `\\frac{${a}}{${b}}`, same, other };
}

function grouped(n: number, by: string): string {
  return `${n}`.replace(/\B(?=(\d{3})+$)/g, by);
}

function reduced(a: number, b: number): [number, number] {
  let [x, y] = [a, b];
  while (y !== 0) [x, y] = [y, x % y];
  return b / x === 1 ? [a / x, 7] : [a / x, b / x];
}

function surd(draw: Draw): Truth {
  const k = draw.whole(2, 9);
  const r = draw.one([2, 3, 5, 6, 7, 10]);
  const text = `${k}\\sqrt{${r}}`;
  const value = k * Math.sqrt(r);
  const same = [text, `\\sqrt{${k * k * r}}`, `${k} \\sqrt {${r}}`, `\\sqrt{${r}}\\cdot ${k}`];
  for (const places of [2, 3, 4])
    same.push(`${text} \\approx ${value.toFixed(places)}`, `${text}=${value.toFixed(places)}`);
  const other = [
    `${r}\\sqrt{${k}}`,
    `${k + 1}\\sqrt{${r}}`,
    `${k * r}`,
    `${text} \\approx ${(value + 1).toFixed(2)}`,
    value.toFixed(2),
  ];
  return { kind: "surd", text, same, other: k === r ? other.slice(1) : other };
}

function expression(draw: Draw): Truth {
  const [a, b] = [draw.whole(2, 9), draw.whole(1, 9)];
  const x = draw.one(["x", "t", "n"]);
  const text = `${a}${x}+${b}`;
  const same = [
    text,
    `${b}+${a}${x}`,
    `${a} ${x} + ${b}`,
    `${a}\\cdot ${x}+${b}`,
    `{${a}${x}}+${b}`,
    `${x}\\cdot${a}+${b}`,
  ];
  const other = [
    `${a}${x}-${b}`,
    `${a}${x}`,
    `${a}${x}+${b + 1}`,
    `${a}${x === "x" ? "y" : "x"}+${b}`,
    `${a}${x}^2+${b}`,
  ];
  return { kind: "expression", text, same, other };
}

function list(draw: Draw): Truth {
  const a = draw.whole(-20, 20);
  const b = a + draw.whole(1, 9);
  const same = [
    `${a},${b}`,
    `${b}, ${a}`,
    `\\{${a},${b}\\}`,
    `x=${a}\\text{ or }x=${b}`,
    `${a}\\text{ and }${b}`,
    `x_1=${b}, x_2=${a}`,
  ];
  const other = [
    `${a}`,
    `${b}`,
    `${a},${b + 1}`,
    `${a},${b},${b + 1}`,
    `${a}.${Math.abs(b)}`,
    `(${a};${b};0)`,
  ];
  return { kind: "list", text: `${a}, ${b}`, same, other };
}

function point(draw: Draw): Truth {
  const [a, b] = [draw.whole(-20, 20), draw.whole(21, 60)];
  const same = [
    `(${a},${b})`,
    `\\left(${a}, ${b}\\right)`,
    `(x,y)=(${a},${b})`,
    `x=${a}, y=${b}`,
    `y=${b}, x=${a}`,
  ];
  same.push(`\\begin{pmatrix}${a}\\\\${b}\\end{pmatrix}`, `\\langle ${a},${b}\\rangle`);
  const other = [
    `(${b},${a})`,
    `(y,x)=(${a},${b})`,
    `x=${b}, y=${a}`,
    `[${a},${b}]`,
    `\\{${a},${b}\\}`,
    `(${a},${b},0)`,
  ];
  return { kind: "point", text: `(${a},${b})`, same, other };
}

function interval(draw: Draw): Truth {
  const a = draw.whole(-20, 20);
  const b = a + draw.whole(1, 30);
  const same = [
    `[${a},${b})`,
    `${a}\\le x<${b}`,
    `x\\in[${a},${b})`,
    `${b}>x\\ge ${a}`,
    `\\left[${a}, ${b}\\right)`,
    `\\{x\\mid ${a}\\le x<${b}\\}`,
  ];
  const other = [
    `(${a},${b})`,
    `[${a},${b}]`,
    `${a}<x<${b}`,
    `\\{${a},${b}\\}`,
    `${a},${b}`,
    `(x,y)=(${a},${b})`,
    `x\\ge ${a}`,
  ];
  other.push(
    `\\{x\\in\\mathbb{Z}\\mid ${a}\\le x<${b}\\}`,
    `\\begin{pmatrix}${a}\\\\${b}\\end{pmatrix}`,
  );
  return { kind: "interval", text: `[${a},${b})`, same, other };
}

const MEASURES = [
  ["cm", "centimeters", "m", "cm^2"],
  ["kg", "kilograms", "lb", "g"],
  ["hours", "hr", "minutes", "days"],
  ["m^2", "square meters", "m^3", "cm^2"],
  ["cents", "cents", "dollars", "euros"],
  ["km/h", "kilometers per hour", "m/s", "km"],
] as const;

function measure(draw: Draw): Truth {
  const n = draw.whole(2, 400);
  const [unit, long, ...others] = draw.one(MEASURES);
  const same = [
    `${n}\\text{ ${unit}}`,
    `${n}`,
    `${n}\\ \\text{${long}}`,
    `${n}\\,\\mathrm{${unit}}`,
    `\\text{${n} ${unit}}`,
  ];
  const other = others.map((wrongUnit) => `${n}\\text{ ${wrongUnit}}`);
  other.push(
    `${n + 1}\\text{ ${unit}}`,
    `${n}.5\\text{ ${unit}}`,
    `\\text{${n}.5 ${unit}}`,
    `${n}\\text{ hundred ${unit}}`,
  );
  return { kind: "measure", text: `${n}\\text{ ${unit}}`, same, other };
}

function named(draw: Draw): Truth {
  const n = draw.whole(2, 99);
  const name = draw.one(["x", "P(A)", "f(3)", "a_5", "\\theta", "|AB|", "S_{10}", "\\angle ABC"]);
  const same = [`${name}=${n}`, `${n}`, `${name} = ${n}.0`, `${n} = ${name}`];
  const other = [
    `${name}=${n + 1}`,
    `Q=${n}`,
    `${name}\\ne ${n}`,
    `${name}>${n}`,
    `2\\cdot ${name}=${2 * n}`,
    `${n}=${n + 1}`,
  ];
  return { kind: "named", text: `${name}=${n}`, same, other };
}

function matrix(draw: Draw): Truth {
  const [a, b, c, d] = [
    draw.whole(-9, 9),
    draw.whole(10, 19),
    draw.whole(20, 29),
    draw.whole(30, 39),
  ];
  const body = (kind: string, ...[p, q, r, s]: number[]) =>
    `\\begin{${kind}}${p}&${q}\\\\${r}&${s}\\end{${kind}}`;
  const same = [
    body("pmatrix", a, b, c, d),
    body("bmatrix", a, b, c, d),
    body("bmatrix", a, b, c, d).replaceAll("&", " & "),
  ];
  const other = [
    body("pmatrix", a, c, b, d),
    body("vmatrix", a, b, c, d),
    `(${a},${b},${c},${d})`,
    `${a * d - b * c}`,
  ];
  return { kind: "matrix", text: same[0] as string, same, other };
}

const DECORATIONS: ((text: string) => string)[] = [
  (text) => text,
  (text) => ` ${text} `,
  (text) => `\\displaystyle ${text}`,
  // In braces alone a comma makes a set.
  (text) => (text.includes(",") ? text : `{${text}}`),
  (text) => `$${text}$`,
  (text) => `${text}.`,
  (text) => `\\,${text}\\;`,
];
const MESSAGES: ((box: string) => string)[] = [
  (box) => box,
  (box) => `Therefore the answer is $${box}$.`,
  (box) => `<think>Maybe \\boxed{-77777}?</think>\n\n**Answer:** ${box}`,
  (box) => `First I get \\boxed{-77777}. That is an intermediate result.\n\nThe answer is ${box}`,
  (box) => `\\[\n${box}\n\\]`,
];

function boxed(text: string): string {
  return `\\boxed{${text}}`;
}

function right(truth: Truth, draw: Draw): MathCase {
  const spelling = draw.one(truth.same);
  const text = draw.one(DECORATIONS)(spelling);
  const message = draw.one(MESSAGES)(boxed(text));
  return {
    how: `${truth.kind}: a right spelling`,
    problem: null,
    truth: truth.text,
    message,
    right: true,
  };
}

/** What makes any answer wrong, whatever it says. */
const SPOILERS: [how: string, (text: string, other: string) => string][] = [
  ["a second guess", (text, other) => `${text}\\text{ or }${other}`],
  ["a second guess in words", (text, other) => `${text}\\text{, alternatively }${other}`],
  ["a second guess behind a comma", (text, other) => `${text}, ${other}`],
  ["a denial", (text) => `\\text{not }${text}`],
  ["a denial behind", (text) => `${text}\\text{ is wrong}`],
  ["words behind", (text) => `${text}\\text{ plus seven}`],
  ["plain words behind", (text) => `${text} plus seven`],
  ["a doubt", (text) => `${text}\\text{ unless it is not}`],
  ["an untrue equation", (text, other) => `${other}=${text}`],
  ["a denied name", (text) => `\\text{not }x=${text}`],
  ["an equation to solve", (text) => `z^2+3=${text}`],
  ["an inequation", (text) => `x\\ne ${text}`],
  ["a modulus", (text) => `${text}\\pmod{7}`],
  ["another sign behind", (text) => `${text}\\heartsuit`],
  ["a multiple", (text) => `${text}\\text{ dozen}`],
];
const HEDGES: [how: string, (box: string, other: string) => string][] = [
  ["two boxes", (box, other) => `${boxed(other)} or ${box}`],
  ["two boxes side by side", (box, other) => `${boxed(other)} ${box}`],
  ["an alternative box", (box, other) => `${boxed(other)}. Alternatively, ${box}`],
  ["a box in reasoning", (box) => `<think>${box}</think>\n\nI do not know.`],
  ["a box in reasoning without end", (box) => `<think>So it is ${box}`],
  ["a box that is denied", (box) => `The answer is not ${box}.`],
  ["a part of a formula", (box) => `$x = -${box}$`],
  ["a power of a box", (box) => `$${box}^3$`],
];

function wrong(truth: Truth, draw: Draw): MathCase {
  const base = { problem: null, truth: truth.text, right: false };
  const other = draw.one(truth.other);
  // A guess that is a part of the truth makes no second answer of it.
  const guess = truth.kind === "list" ? "-77777" : other;
  const way = draw.next();
  if (way < 0.4) {
    const message = draw.one(MESSAGES)(boxed(draw.one(DECORATIONS)(other)));
    return { ...base, how: `${truth.kind}: another value`, message };
  }
  if (way < 0.75) {
    const [how, spoil] = draw.one(SPOILERS);
    const message = draw.one(MESSAGES)(boxed(spoil(draw.one(truth.same), guess)));
    return { ...base, how: `${truth.kind}: ${how}`, message };
  }
  const [how, hedge] = draw.one(HEDGES);
  return {
    ...base,
    how: `${truth.kind}: ${how}`,
    message: hedge(boxed(draw.one(truth.same)), guess),
  };
}
