import { Fields } from "./attributes.ts";
import { equal } from "./compare.ts";
import { type Callable, type Named, TemplateError, Undefined, type Value } from "./values.ts";

/** `loop` within a loop. */
export class Loop extends Fields {
  at = 0;
  readonly #items: readonly Value[];
  readonly #depth: number;
  override readonly call: Callable | null;
  #last: Value[] | null = null;

  constructor(items: readonly Value[], depth: number, again: Callable | null) {
    super();
    this.#items = items;
    this.#depth = depth;
    this.call = again;
  }

  override get(name: string): Value {
    const { at } = this;
    const { length } = this.#items;
    switch (name) {
      case "index":
        return at + 1;
      case "index0":
        return at;
      case "first":
        return at === 0;
      case "last":
        return at === length - 1;
      case "length":
        return length;
      case "revindex":
        return length - at;
      case "revindex0":
        return length - at - 1;
      case "depth":
        return this.#depth;
      case "depth0":
        return this.#depth - 1;
      case "previtem":
        return at > 0 ? this.#items[at - 1] : new Undefined("there is no previous item");
      case "nextitem":
        return at < length - 1 ? this.#items[at + 1] : new Undefined("there is no next item");
      case "cycle":
        return (items: Value[]) => {
          if (items.length === 0) throw new TemplateError("no items for cycling given");
          return items[at % items.length];
        };
      case "changed":
        return (items: Value[], _named: Named) => this.#changed(items);
    }
    return undefined;
  }

  #changed(items: Value[]): boolean {
    const last = this.#last;
    this.#last = items;
    return last === null || !equal(last, items);
  }
}
