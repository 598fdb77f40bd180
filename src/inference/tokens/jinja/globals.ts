import { Raised } from "./frame.ts";
import { textOf } from "./text.ts";
import {
  type Callable,
  Dict,
  itemsOf,
  listOf,
  Namespace,
  numberOf,
  TemplateError,
  type Value,
  view,
} from "./values.ts";

/** As many as the sandbox of transformers lets a template have. */
const MAX_RANGE = 100_000;

const range: Callable = (positional) => {
  const [first, second, by = 1] = positional.map(numberOf);
  const [start, stop] = second === undefined ? [0, first as number] : [first as number, second];
  if (by === 0) throw new TemplateError("range() arg 3 must not be zero");
  const length = Math.max(0, Math.ceil((stop - start) / by));
  if (length > MAX_RANGE)
    throw new TemplateError(
      "Range too big. The sandbox blocks ranges larger than MAX_RANGE (100000).",
    );
  return view(
    Array.from({ length }, (_, index) => start + index * by),
    "range",
  );
};

const dict: Callable = ([from], named) => {
  const made = new Dict();
  const pairs = from instanceof Dict ? from.entries() : Array.from(itemsOf(from ?? []), listOf);
  for (const [key, value] of pairs) made.set(key, value);
  for (const [name, value] of named) made.set(name, value);
  return made;
};

const namespace: Callable = ([from], named) => {
  const made = new Namespace();
  const given = dict(from === undefined ? [] : [from], named) as Dict;
  for (const [name, value] of given.entries()) made.fields.set(textOf(name), value);
  return made;
};

const joiner: Callable = ([separator = ", "], named) => {
  let isUsed = false;
  return () => {
    const shown = isUsed ? (named.get("sep") ?? separator) : "";
    isUsed = true;
    return shown;
  };
};

const raise: Callable = ([message]) => {
  throw new Raised(textOf(message));
};

/** What Jinja and transformers give every template. */
export const GLOBALS: Record<string, Value> = {
  ...{ range, dict, namespace, joiner, raise_exception: raise },
};

/** Jinja's others, which no chat template is known to use. */
export const OTHER_GLOBALS = ["cycler", "lipsum"];
