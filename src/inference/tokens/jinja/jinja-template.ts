import { Frame, Raised, Scope } from "./frame.ts";
import { GLOBALS, OTHER_GLOBALS } from "./globals.ts";
import { compileBody, type Output, type Run } from "./statement-compiler.ts";
import { parseTemplate } from "./statement-parser.ts";
import { TemplateError, type Value } from "./values.ts";

/**
 * A template of Jinja as transformers runs it: the immutable sandbox with `trim_blocks`, `lstrip_blocks`, loop
 * controls, the `generation` tag and a plain `tojson`. What it renders is what Python renders, or it refuses.
 */
export class JinjaTemplate {
  readonly #run: Run;

  /** @throws TemplateError that names the line, and what is not supported there */
  constructor(text: string) {
    const scope = new Scope(null);
    this.#run = compileBody(parseTemplate(text), scope);
    const other = OTHER_GLOBALS.find(
      (name) => scope.used.has(name) && scope.slot(name) === undefined,
    );
    if (other) throw new TemplateError(`the function "${other}" is not supported`);
  }

  /** @throws TemplateError */
  render(variables: ReadonlyMap<string, Value>): string {
    const globals = new Map<string, Value>(Object.entries(GLOBALS));
    for (const [name, value] of variables) globals.set(name, value);
    const rendering = { globals, line: 1 };
    const output: Output = { text: "" };
    try {
      this.#run(new Frame(null, rendering), output);
    } catch (error) {
      if (error instanceof Raised) throw error;
      if (error instanceof TemplateError)
        throw new TemplateError(`line ${rendering.line}: ${error.message}`);
      if (error instanceof RangeError)
        throw new TemplateError(`line ${rendering.line}: it nests too deeply`);
      throw error;
    }
    return output.text;
  }
}
