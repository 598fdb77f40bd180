/**
 * `{{observation}}`, or `{{observation:REGEX}}`, whose expression may hold braces in pairs
 * (`\d{2}`), so that `\boxed{{{observation:(\d+)}}}` means what it looks like.
 */
const PLACEHOLDER = /\{\{observation(?::((?:\\.|[^{}\\]|\{[^{}]*\})*))?\}\}/g;
const MAX_SHOWN_CHARS = 200;

/** What the tools say under their output about the shell or the interpreter. */
const FOOTERS =
  /(?:(?:^|\n)\[(?:The command|Jupyter|Current working|Python interpreter|Command finished)[^\n]*\])+$/;

type Filled = { ok: true; text: string } | { ok: false; problem: string };

/** What is wrong with a template, or null. */
export function placeholderProblem(template: string): string | null {
  for (const [whole, expression] of template.matchAll(PLACEHOLDER)) {
    if (expression === undefined) continue;
    try {
      new RegExp(expression, "m");
    } catch (error) {
      return `${whole}: ${(error as Error).message}`;
    }
  }
  const rest = template.replace(PLACEHOLDER, "");
  return rest.includes("{{observation") ? "a placeholder {{observation…}} is not closed" : null;
}

/** Puts what the tools printed last, or the first group of an expression in their answer, into a template. */
export function fillIn(template: string, observation: string | null): Filled {
  let problem: string | null = null;
  const text = template.replace(PLACEHOLDER, (whole, expression: string | undefined) => {
    if (observation === null) problem = `${whole} stands before the first tool message`;
    if (observation === null) return "";
    if (expression === undefined) return observation.replace(FOOTERS, "");
    const found = new RegExp(expression, "m").exec(observation);
    if (!found) {
      const shown = JSON.stringify(observation.slice(0, MAX_SHOWN_CHARS));
      problem = `${whole} finds nothing in ${shown}`;
    }
    return found?.[1] ?? found?.[0] ?? "";
  });
  return problem === null ? { ok: true, text } : { ok: false, problem };
}
