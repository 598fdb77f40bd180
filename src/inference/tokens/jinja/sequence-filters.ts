import { bound, type Filter } from "./arguments.ts";
import { compute } from "./arithmetic.ts";
import { getItem } from "./attributes.ts";
import { equal, order } from "./compare.ts";
import { FILTERS } from "./filters.ts";
import { TESTS } from "./tests.ts";
import { textOf } from "./text.ts";
import {
  Dict,
  itemsOf,
  Lazy,
  listOf,
  type Named,
  TemplateError,
  Tuple,
  truth,
  Undefined,
  type Value,
} from "./values.ts";

/** What `attribute="a.b.0"` takes of an item. */
function getter(attribute: Value, other?: Value): (item: Value) => Value {
  if (attribute === null || attribute === undefined) return (item) => item;
  const parts = typeof attribute === "string" ? attribute.split(".") : [attribute];
  const keys = parts.map((part) => (/^\d+$/.test(String(part)) ? Number(part) : part));
  return (item) => {
    let value = item;
    for (const key of keys) {
      value = getItem(value, key);
      if (value instanceof Undefined && other !== undefined) value = other;
    }
    return value;
  };
}

/** Texts in lower case, unless case matters. */
function folding(isCaseSensitive: Value, of: (item: Value) => Value): (item: Value) => Value {
  if (truth(isCaseSensitive)) return of;
  return (item) => {
    const value = of(item);
    return typeof value === "string" ? value.toLowerCase() : value;
  };
}

function sorted(items: readonly Value[], of: (item: Value) => Value, reverse: boolean): Value[] {
  const keyed = items.map((item) => ({ item, key: of(item) }));
  keyed.sort((a, b) => (reverse ? order(b.key, a.key) : order(a.key, b.key)));
  return keyed.map(({ item }) => item);
}

function extreme(direction: 1 | -1): Filter {
  return (value, positional, named) => {
    const [isCaseSensitive = false, attribute = null] = bound(
      ["case_sensitive", "attribute"],
      positional,
      named,
    );
    const of = folding(isCaseSensitive, getter(attribute));
    const items = listOf(value);
    if (items.length === 0) return new Undefined("No aggregated item, sequence was empty.");
    return items.reduce((best, item) => (order(of(item), of(best)) * direction > 0 ? item : best));
  };
}

function filterNamed(name: Value): Filter {
  const found =
    typeof name === "string" && Object.hasOwn(FILTERS, name) ? FILTERS[name] : undefined;
  if (!found) throw new TemplateError(`No filter named '${textOf(name)}'.`);
  return found;
}

function testNamed(name: Value): Filter {
  const found = typeof name === "string" && Object.hasOwn(TESTS, name) ? TESTS[name] : undefined;
  if (!found) throw new TemplateError(`No test named '${textOf(name)}'.`);
  return found;
}

/** `select`, `reject` and, with an attribute before the test, `selectattr` and `rejectattr`. */
function choosing(wanted: boolean, byAttribute: boolean): Filter {
  return (value, positional, named) => {
    const given = [...positional];
    const of = getter(byAttribute ? given.shift() : null);
    const [name, ...rest] = given;
    const test: Filter = name === undefined ? truth : testNamed(name);
    return new Lazy(
      (function* () {
        for (const item of present(value)) {
          if (truth(test(of(item), rest, named)) === wanted) yield item;
        }
      })(),
    );
  };
}

const MAP: Filter = (value, positional, named) => {
  if (positional.length === 0 && named.has("attribute")) {
    const of = getter(named.get("attribute"), named.get("default"));
    return new Lazy(mapped(value, of));
  }
  const [name, ...rest] = positional;
  const filter = filterNamed(name);
  return new Lazy(mapped(value, (item) => filter(item, rest, named)));
};

/** For these filters everything that is false, such as None, has no items. */
function present(value: Value): Iterable<Value> {
  return truth(value) ? itemsOf(value) : [];
}

function* mapped(value: Value, of: (item: Value) => Value): Generator<Value> {
  for (const item of present(value)) yield of(item);
}

const JOIN: Filter = (value, positional, named) => {
  const [separator = "", attribute = null] = bound(["d", "attribute"], positional, named);
  const of = getter(attribute);
  return Array.from(itemsOf(value), (item) => textOf(of(item))).join(textOf(separator));
};

const UNIQUE: Filter = (value, positional, named) => {
  const [isCaseSensitive = false, attribute = null] = bound(
    ["case_sensitive", "attribute"],
    positional,
    named,
  );
  const of = folding(isCaseSensitive, getter(attribute));
  const seen = new Dict();
  const isNew = (item: Value) => !seen.has(of(item)) && seen.set(of(item), true) !== null;
  return new Lazy(itemsOf(value).filter(isNew));
};

const GROUPBY: Filter = (value, positional, named) => {
  const [attribute, other, isCaseSensitive = false] = bound(
    ["attribute", "default", "case_sensitive"],
    positional,
    named,
  );
  const of = folding(isCaseSensitive, getter(attribute, other));
  const groups: Tuple[] = [];
  for (const item of sorted(listOf(value), of, false)) {
    const last = groups.at(-1);
    if (last && equal(of((last[1] as Value[])[0]), of(item))) (last[1] as Value[]).push(item);
    else groups.push(Tuple.of(getter(attribute, other)(item), [item]));
  }
  return groups;
};

const DICTSORT: Filter = (value, positional, named) => {
  const [isCaseSensitive = false, by = "key", reverse = false] = bound(
    ["case_sensitive", "by", "reverse"],
    positional,
    named,
  );
  const pairs = Array.from((value as Dict).entries(), (pair) => Tuple.of(...pair));
  const at = by === "value" ? 1 : 0;
  const of = folding(isCaseSensitive, (pair) => (pair as Tuple)[at]);
  return sorted(pairs, of, truth(reverse));
};

const BATCH: Filter = (value, positional, named) => {
  const [size, fill = null] = bound(["linecount", "fill_with"], positional, named);
  const items = [...itemsOf(value)];
  const count = Number(size);
  const rows: Value[][] = [];
  for (let at = 0; at < items.length; at += count) rows.push(items.slice(at, at + count));
  const last = rows.at(-1);
  while (last && fill !== null && last.length < count) last.push(fill);
  return new Lazy(rows);
};

function sum(value: Value, positional: Value[], named: Named): Value {
  const [attribute = null, start = 0] = bound(["attribute", "start"], positional, named);
  const of = getter(attribute);
  return listOf(value).reduce((total: Value, item) => compute("+", total, of(item)), start);
}

export const SEQUENCE_FILTERS: Record<string, Filter> = {
  ...{
    map: MAP,
    join: JOIN,
    unique: UNIQUE,
    groupby: GROUPBY,
    dictsort: DICTSORT,
    batch: BATCH,
    sum,
  },
  ...{ min: extreme(-1), max: extreme(1) },
  ...{ select: choosing(true, false), reject: choosing(false, false) },
  ...{ selectattr: choosing(true, true), rejectattr: choosing(false, true) },
  first(value) {
    for (const item of itemsOf(value)) return item;
    return new Undefined("No first item, sequence was empty.");
  },
  last: (value) => [...itemsOf(value)].at(-1) ?? new Undefined("No last item, sequence was empty."),
  list: (value) => [...itemsOf(value)],
  items(value) {
    if (value instanceof Undefined) return new Lazy([]);
    if (!(value instanceof Dict))
      throw new TemplateError("Can only get item pairs from a mapping.");
    return new Lazy(Array.from(value.entries(), (pair) => Tuple.of(...pair)));
  },
  sort(value, positional, named) {
    const [reverse = false, isCaseSensitive = false, attribute = null] = bound(
      ["reverse", "case_sensitive", "attribute"],
      positional,
      named,
    );
    const keys = String(attribute ?? "").split(",");
    const of = keys.map((key) => folding(isCaseSensitive, getter(key === "" ? null : key)));
    const key = (item: Value) => (of.length === 1 ? of[0]?.(item) : of.map((part) => part(item)));
    return sorted([...itemsOf(value)], key, truth(reverse));
  },
};
