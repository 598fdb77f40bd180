import type { Draw } from "./math-cases.ts";

/** A problem, and a formula of it that is not worked out, with a trivial change. */
export type Copied = { problem: string; truth: string; copy: string; how: string };

type Asked = { problem: string; truth: string; formulas: string[] };

/** The copies of one drawn problem. */
export function copiesOf(draw: Draw): Copied[] {
  const kinds = [
    sum,
    fraction,
    product,
    power,
    linear,
    quadratic,
    expand,
    factor,
    simplify,
    inequality,
    identity,
    surd,
    line,
  ];
  const { problem, truth, formulas } = draw.one([...kinds, percent, logarithm, binomial, system])(
    draw,
  );
  return formulas.flatMap((formula) =>
    CHANGES.map(([how, change]) => ({ problem, truth, copy: change(formula), how })),
  );
}

const CHANGES: [how: string, (formula: string) => string][] = [
  ["as it stands", (formula) => formula],
  ["without blanks", (formula) => formula.replace(/(?<![a-z]) /g, "")],
  ["set large", (formula) => `\\displaystyle ${formula}`],
  ["in dollars", (formula) => `$${formula}$`],
  ["with another sign of multiplication", (formula) => formula.replace(/\\cdot|\\times/g, "*")],
  ["with a name", (formula) => (/[=<>]|\\[lg]e/.test(formula) ? formula : `x = ${formula}`)],
  ["with its terms in another order", swapped],
  ["in braces", (formula) => `{${formula}}`],
  [
    "in brackets",
    (formula) => (/[=<>]|\\[lg]e/.test(formula) ? formula : `\\left(${formula}\\right)`),
  ],
  ["times one", (formula) => (/[=<>]|\\[lg]e/.test(formula) ? formula : `1\\cdot(${formula})`)],
  ["plus nothing", (formula) => (/[=<>]|\\[lg]e/.test(formula) ? formula : `${formula}+0`)],
  ["with a full stop", (formula) => `${formula}.`],
];

function swapped(formula: string): string {
  const sides = formula.split("=");
  if (sides.length === 2) return `${sides[1]}=${sides[0]}`;
  const terms = formula.split(/(?<![\^({\d])\+(?![^({]*[)}])/);
  return terms.length === 2 && !/[<>-]|\\[lg]e/.test(formula) ? `${terms[1]}+${terms[0]}` : formula;
}

function sum({ whole }: Draw): Asked {
  const [a, b] = [whole(11, 500), whole(11, 500)];
  return { problem: `Compute $${a} + ${b}$.`, truth: `${a + b}`, formulas: [`${a} + ${b}`] };
}

function fraction({ whole }: Draw): Asked {
  const [a, b] = [whole(2, 9), whole(2, 9)];
  const formula = `\\frac{1}{${a}} + \\frac{1}{${b + 10}}`;
  const [n, d] = [a + b + 10, a * (b + 10)];
  let [x, y] = [n, d];
  while (y !== 0) [x, y] = [y, x % y];
  return {
    problem: `Evaluate \\(${formula}\\).`,
    truth: `\\frac{${n / x}}{${d / x}}`,
    formulas: [formula],
  };
}

function product({ whole }: Draw): Asked {
  const [a, b] = [whole(3, 40), whole(3, 40)];
  return {
    problem: `What is ${a} \\cdot ${b}?`,
    truth: `${a * b}`,
    formulas: [`${a} \\cdot ${b}`],
  };
}

function power({ whole }: Draw): Asked {
  const [a, n] = [whole(2, 9), whole(3, 7)];
  return {
    problem: `Find the value of \\[${a}^{${n}} - 1.\\]`,
    truth: `${a ** n - 1}`,
    formulas: [`${a}^{${n}} - 1`],
  };
}

function linear({ whole }: Draw): Asked {
  const [a, x, b] = [whole(2, 9), whole(2, 30), whole(1, 30)];
  const formula = `${a}x + ${b} = ${a * x + b}`;
  const problem = `Solve for $x$: $${formula}$.`;
  return {
    problem,
    truth: whole(0, 1) ? `x=${x}` : `${x}`,
    formulas: [formula, `${a}x = ${a * x}`],
  };
}

function quadratic({ whole }: Draw): Asked {
  const [p, q] = [whole(1, 9), whole(10, 19)];
  const formula = `x^2 - ${p + q}x + ${p * q} = 0`;
  return {
    problem: `Solve $${formula}$.`,
    truth: `${p}, ${q}`,
    formulas: [formula, `(x-${p})(x-${q})=0`],
  };
}

function expand({ whole }: Draw): Asked {
  const [p, q] = [whole(1, 9), whole(1, 9)];
  const formula = p === q ? `(x+${p})^2` : `(x+${p})(x+${q})`;
  const formulas = [formula, `(x+${p})(x+${q})`, `(x+${q})(x+${p})`];
  return { problem: `Expand $${formula}$.`, truth: `x^2+${p + q}x+${p * q}`, formulas };
}

function factor({ whole }: Draw): Asked {
  const [p, q] = [whole(1, 9), whole(10, 19)];
  const formula = `x^2+${p + q}x+${p * q}`;
  const formulas = [formula, `x(x+${p + q})+${p * q}`, `${p * q}+x^2+${p + q}x`];
  return { problem: `Factor the polynomial $${formula}$.`, truth: `(x+${p})(x+${q})`, formulas };
}

function simplify({ whole }: Draw): Asked {
  const [a, b] = [whole(2, 9), whole(2, 9)];
  const formulas = [`${a}x + ${b}x`, `${b}x + ${a}x`, `x(${a} + ${b})`];
  return { problem: `Simplify $${a}x + ${b}x$.`, truth: `${a + b}x`, formulas };
}

function inequality({ whole }: Draw): Asked {
  const [a, x, b] = [whole(2, 9), whole(2, 30), whole(1, 30)];
  const formula = `${a}x + ${b} < ${a * x + b}`;
  const truth = whole(0, 1) ? `x < ${x}` : `(-\\infty, ${x})`;
  return {
    problem: `Solve the inequality $${formula}$.`,
    truth,
    formulas: [formula, `${a}x < ${a * x}`],
  };
}

function identity({ whole }: Draw): Asked {
  const k = whole(2, 9);
  const formula = `${k}\\sin^2 x + ${k}\\cos^2 x`;
  return {
    problem: `Simplify $${formula}$.`,
    truth: `${k}`,
    formulas: [formula, `${k}(\\sin^2 x+\\cos^2 x)`],
  };
}

function surd({ whole }: Draw): Asked {
  const [k, m] = [whole(2, 6), whole(2, 6)];
  const formula = `\\sqrt{${2 * k * k}} + \\sqrt{${2 * m * m}}`;
  return { problem: `Simplify $${formula}$.`, truth: `${k + m}\\sqrt{2}`, formulas: [formula] };
}

function line({ whole }: Draw): Asked {
  const [m, b] = [whole(2, 9), whole(1, 9)];
  const formula = `${m}x - y + ${b} = 0`;
  const problem = `Write the line $${formula}$ in slope-intercept form.`;
  return { problem, truth: `y=${m}x+${b}`, formulas: [formula, `${m}x + ${b} - y = 0`] };
}

function percent({ whole }: Draw): Asked {
  const n = 10 * whole(1, 9);
  return { problem: `Write $${n}\\%$ as a decimal.`, truth: `${n / 100}`, formulas: [`${n}\\%`] };
}

function logarithm({ whole }: Draw): Asked {
  const n = whole(2, 9);
  return {
    problem: `Evaluate $\\log_2 ${2 ** n}$.`,
    truth: `${n}`,
    formulas: [`\\log_2 ${2 ** n}`],
  };
}

function binomial({ whole }: Draw): Asked {
  const n = whole(5, 12);
  const truth = `${(n * (n - 1)) / 2}`;
  return {
    problem: `Compute $\\binom{${n}}{2}$.`,
    truth,
    formulas: [`\\binom{${n}}{2}`, `\\frac{${n}!}{2!\\cdot ${n - 2}!}`],
  };
}

function system({ whole }: Draw): Asked {
  const [x, y] = [whole(1, 20), whole(21, 40)];
  const first = `x + y = ${x + y}`;
  const second = `y - x = ${y - x}`;
  return {
    problem: `Solve the system $${first}$, $${second}$.`,
    truth: `(${x},${y})`,
    formulas: [first, second, `${first}, ${second}`],
  };
}
