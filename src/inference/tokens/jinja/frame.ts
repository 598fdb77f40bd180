import { TemplateError, Undefined, type Value } from "./values.ts";

/** What is the same for one rendering, and the line that it is at. */
export type Rendering = { globals: ReadonlyMap<string, Value>; line: number };

/** The variables that one part of a template assigns to: the template, a macro, the body of a loop. */
export class Scope {
  readonly parent: Scope | null;
  /** Whether the part may be left out of a rendering, so that what is unknown in it may not matter. */
  isConditional = false;
  readonly used = new Set<string>();
  readonly #slots = new Map<string, number>();

  constructor(parent: Scope | null) {
    this.parent = parent;
    this.isConditional = parent?.isConditional ?? false;
  }

  declare(name: string): number {
    const slot = this.#slots.get(name) ?? this.#slots.size;
    this.#slots.set(name, slot);
    return slot;
  }

  slot(name: string): number | undefined {
    return this.#slots.get(name);
  }

  /** Reads a variable: of this scope where it is assigned to, or of those around it, or of the template's input. */
  reader(name: string): (frame: Frame) => Value {
    for (let scope: Scope | null = this; scope; scope = scope.parent) scope.used.add(name);
    let places: [number, number][] | null = null;
    return (frame) => {
      places ??= this.#places(name);
      for (const [up, slot] of places) {
        let holder: Frame = frame;
        for (let at = 0; at < up; at++) holder = holder.parent as Frame;
        const value = holder.slots[slot];
        if (value !== undefined) return value;
      }
      const value = frame.rendering.globals.get(name);
      return value === undefined ? new Undefined(`'${name}' is undefined`) : value;
    };
  }

  /** Scopes may declare a variable behind its use, so this is asked once all is compiled. */
  #places(name: string): [number, number][] {
    const places: [number, number][] = [];
    let up = 0;
    for (let scope: Scope | null = this; scope; scope = scope.parent, up++) {
      const slot = scope.slot(name);
      if (slot !== undefined) places.push([up, slot]);
    }
    return places;
  }
}

/** The variables of one run of a scope's part. */
export class Frame {
  readonly slots: Value[] = [];
  readonly parent: Frame | null;
  readonly rendering: Rendering;

  constructor(parent: Frame | null, rendering: Rendering) {
    this.parent = parent;
    this.rendering = rendering;
  }
}

/** The template asks for its end by `raise_exception`. */
export class Raised extends TemplateError {}
