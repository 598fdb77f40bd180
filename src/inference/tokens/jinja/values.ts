/**
 * The values of a template, as Python has them.
 *
 * None is null, True and False are booleans, an int is a number or, beyond 2^53, a bigint; a str is a
 * string, a list an array. The classes below are what JavaScript lacks.
 */
export type Value = unknown;

/** Arguments by name. */
export type Named = ReadonlyMap<string, Value>;

export type Callable = (positional: Value[], named: Named) => Value;

export const NO_NAMES: Named = new Map();

/** What a template does wrong, in the words of Jinja where it has some. */
export class TemplateError extends Error {}

/** Of a name, item or attribute that is not there. It is empty text; most other uses are errors. */
export class Undefined {
  readonly hint: string;

  constructor(hint: string) {
    this.hint = hint;
  }

  fail(): never {
    throw new TemplateError(this.hint);
  }
}

export class Float {
  readonly value: number;

  constructor(value: number) {
    this.value = value;
  }
}

export class Tuple extends Array<Value> {}

export function tuple(...items: Value[]): Tuple {
  const made = new Tuple();
  for (const item of items) made.push(item);
  return made;
}

/** `range(…)`, and what `items()`, `keys()` and `values()` of a dict give: no list, and without items by index. */
export class View extends Array<Value> {
  kind = "";
}

export function view(items: Iterable<Value>, kind: string): View {
  const made = new View();
  for (const item of items) made.push(item);
  made.kind = kind;
  return made;
}

/** A generator: it is always true, and its items are there once. */
export class Lazy {
  readonly items: Iterator<Value>;
  readonly kind: string;

  constructor(items: Iterable<Value>, kind = "generator") {
    this.items = items[Symbol.iterator]();
    this.kind = kind;
  }
}

/** What `safe` and `escape` give: text that escapes whatever text is added to it. */
export class Markup {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Markup as the text that it is. */
export function plain(value: Value): Value {
  return value instanceof Markup ? value.text : value;
}

export class Namespace {
  readonly fields = new Map<string, Value>();
}

export class Dict {
  readonly #values = new Map<Value, Value>();
  /** Of keys that are not what the map has in their place, such as True for 1. */
  #keys: Map<Value, Value> | null = null;

  get size(): number {
    return this.#values.size;
  }

  get(key: Value): Value {
    return this.#values.get(typeof key === "string" ? key : keyOf(key));
  }

  has(key: Value): boolean {
    return this.#values.has(typeof key === "string" ? key : keyOf(key));
  }

  set(key: Value, value: Value): this {
    const stored = keyOf(key);
    if (stored !== key && !this.#values.has(stored)) {
      this.#keys ??= new Map();
      this.#keys.set(stored, key);
    }
    this.#values.set(stored, value);
    return this;
  }

  *keys(): IterableIterator<Value> {
    for (const key of this.#values.keys()) yield this.#keys?.get(key) ?? key;
  }

  values(): IterableIterator<Value> {
    return this.#values.values();
  }

  *entries(): IterableIterator<[Value, Value]> {
    for (const [key, value] of this.#values) yield [this.#keys?.get(key) ?? key, value];
  }
}

/** Keys that are equal in Python are the same here. */
function keyOf(key: Value): Value {
  if (key instanceof Markup) return key.text;
  if (typeof key === "boolean") return Number(key);
  if (key instanceof Float) return Number.isInteger(key.value) ? key.value : `float ${key.value}`;
  if (key instanceof Tuple)
    return `tuple ${JSON.stringify(key.map((item) => String(keyOf(item))))}`;
  if (Array.isArray(key) || key instanceof Dict) {
    throw new TemplateError(`unhashable type: '${typeName(key)}'`);
  }
  return key;
}

export function typeName(value: Value): string {
  if (value === null) return "NoneType";
  if (typeof value === "boolean") return "bool";
  if (typeof value === "string") return "str";
  if (typeof value === "number" || typeof value === "bigint") return "int";
  if (typeof value === "function") return "function";
  if (value instanceof View) return value.kind;
  if (value instanceof Markup) return "Markup";
  if (value instanceof Tuple) return "tuple";
  if (Array.isArray(value)) return "list";
  if (value instanceof Lazy) return value.kind;
  return (value as object).constructor.name.toLowerCase();
}

export function isNumber(value: Value): value is number | bigint | boolean | Float {
  const type = typeof value;
  return type === "number" || type === "bigint" || type === "boolean" || value instanceof Float;
}

/** The number of JavaScript, which for large ints is only near. */
export function numberOf(value: Value): number {
  return value instanceof Float ? value.value : Number(value);
}

export function truth(value: Value): boolean {
  if (typeof value === "boolean") return value;
  if (typeof value === "string") return value !== "";
  if (value === null) return false;
  if (Array.isArray(value)) return value.length > 0;
  if (value instanceof Dict) return value.size > 0;
  if (value instanceof Undefined) return false;
  if (value instanceof Float) return value.value !== 0;
  if (value instanceof Markup) return value.text !== "";
  return typeof value === "object" || typeof value === "function" || Boolean(value);
}

/** What `for` and the filters go through. */
export function* itemsOf(value: Value): Generator<Value> {
  if (Array.isArray(value)) yield* value;
  else if (typeof value === "string") yield* value;
  else if (value instanceof Markup) yield* value.text;
  else if (value instanceof Dict) yield* value.keys();
  else if (value instanceof Lazy) {
    for (let next = value.items.next(); !next.done; next = value.items.next()) yield next.value;
  } else if (!(value instanceof Undefined)) {
    throw new TemplateError(`'${typeName(value)}' object is not iterable`);
  }
}

/** The items at once, of which the array is to be read only. */
export function listOf(value: Value): readonly Value[] {
  return Array.isArray(value) ? value : [...itemsOf(value)];
}

export function lengthOf(value: Value): number {
  if (typeof value === "string") return charCount(value);
  if (Array.isArray(value)) return value.length;
  if (value instanceof Dict) return value.size;
  if (value instanceof Undefined) return 0;
  if (value instanceof Markup) return charCount(value.text);
  throw new TemplateError(`object of type '${typeName(value)}' has no len()`);
}

const SURROGATE = /[\ud800-\udfff]/;

/** Python counts characters, and JavaScript halves of those beyond U+FFFF. */
export function hasWideChars(text: string): boolean {
  return SURROGATE.test(text);
}

function charCount(text: string): number {
  return hasWideChars(text) ? [...text].length : text.length;
}
