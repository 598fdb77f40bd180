import { bound } from "./arguments.ts";
import type { Expression, Parameters, Statement, Target } from "./ast.ts";
import { compileExpression, conditionally, type Evaluate } from "./expression-compiler.ts";
import { Frame, Scope } from "./frame.ts";
import { Loop } from "./loop.ts";
import { textOf } from "./text.ts";
import {
  type Callable,
  Dict,
  listOf,
  type Named,
  Namespace,
  TemplateError,
  Tuple,
  truth,
  Undefined,
  type Value,
} from "./values.ts";

export type Output = { text: string };

/** How a statement ended: it is over, or the loop around it is to end or to go on. */
type End = "" | "break" | "continue";

export type Run = (frame: Frame, output: Output) => End;

const MAX_OUTPUT_CHARS = 2 ** 28;

/** @throws TemplateError that names the line of what is not supported */
export function compileBody(body: Statement[], scope: Scope): Run {
  const runs = body.map((statement) => compileStatement(statement, scope));
  const [only] = runs;
  if (only && runs.length === 1) return only;
  return (frame, output) => {
    for (const run of runs) {
      const end = run(frame, output);
      if (end !== "") return end;
    }
    return "";
  };
}

function compileStatement(statement: Statement, scope: Scope): Run {
  const { line } = statement;
  switch (statement.type) {
    case "data": {
      const { text } = statement;
      return (_, output) => {
        output.text += text;
        return "";
      };
    }
    case "output": {
      const of = compileExpression(statement.of, scope);
      return (frame, output) => {
        frame.rendering.line = line;
        output.text += textOf(of(frame));
        if (output.text.length > MAX_OUTPUT_CHARS) throw new TemplateError("the text is too long");
        return "";
      };
    }
    case "if":
      return compileIf(statement, scope);
    case "for":
      return compileFor(statement, scope);
    case "set": {
      const value = compileExpression(statement.value, scope);
      const assign = compileTarget(statement.target, scope);
      return (frame) => {
        frame.rendering.line = line;
        assign(frame, value(frame));
        return "";
      };
    }
    case "set block": {
      const text = compileText(statement.body, new Scope(scope));
      const assign = compileTarget(statement.target, scope);
      const shown = compileFiltered(statement.filter, scope);
      return (frame) => {
        assign(frame, shown(frame, text(inner(frame))));
        return "";
      };
    }
    case "filter block": {
      const text = compileText(statement.body, new Scope(scope));
      const shown = compileFiltered(statement.filter, scope);
      return (frame, output) => {
        output.text += textOf(shown(frame, text(inner(frame))));
        return "";
      };
    }
    case "macro": {
      const slot = scope.declare(statement.name);
      const macro = compileMacro(statement.name, statement.parameters, statement.body, scope);
      return (frame) => {
        frame.slots[slot] = macro(frame);
        return "";
      };
    }
    case "call block":
      return compileCallBlock(statement, scope);
    case "with":
      return compileWith(statement, scope);
    case "scope": {
      const run = compileBody(statement.body, new Scope(scope));
      return (frame, output) => run(inner(frame), output);
    }
    case "break":
    case "continue": {
      const { type } = statement;
      return () => type;
    }
  }
}

function inner(frame: Frame): Frame {
  return new Frame(frame, frame.rendering);
}

function compileText(body: Statement[], scope: Scope): (frame: Frame) => string {
  const run = compileBody(body, scope);
  return (frame) => {
    const output = { text: "" };
    run(frame, output);
    return output.text;
  };
}

const FILTERED = " filtered";

/** The filters of a block, around its text. */
function compileFiltered(filter: Expression | null, scope: Scope) {
  if (filter === null) return (_: Frame, text: string): Value => text;
  const within = new Scope(scope);
  const slot = within.declare(FILTERED);
  const shown = compileExpression(around(filter), within);
  return (frame: Frame, text: string): Value => {
    const own = inner(frame);
    own.slots[slot] = text;
    return shown(own);
  };
}

function around(filter: Expression): Expression {
  if (filter.type !== "filter") return filter;
  return { ...filter, of: filter.of ? around(filter.of) : { type: "name", name: FILTERED } };
}

function compileIf({ branches, line }: Extract<Statement, { type: "if" }>, scope: Scope): Run {
  const compiled = branches.map(({ test, body }) => ({
    test: test && compileExpression(test, scope),
    run: conditionally(scope, () => compileBody(body, scope)),
  }));
  return (frame, output) => {
    for (const { test, run } of compiled) {
      frame.rendering.line = line;
      if (!test || truth(test(frame))) return run(frame, output);
    }
    return "";
  };
}

type Assign = (frame: Frame, value: Value) => void;

function compileTarget(target: Target, scope: Scope): Assign {
  if (target.type === "name") {
    const slot = scope.declare(target.name);
    return (frame, value) => {
      frame.slots[slot] = value;
    };
  }
  if (target.type === "field") {
    const holder = scope.reader(target.of);
    const { name } = target;
    return (frame, value) => {
      const found = holder(frame);
      if (!(found instanceof Namespace)) {
        throw new TemplateError("cannot assign attribute on non-namespace object");
      }
      found.fields.set(name, value);
    };
  }
  const items = target.items.map((item) => compileTarget(item, scope));
  return (frame, value) => {
    const values = listOf(value);
    if (values.length !== items.length) {
      const what = values.length < items.length ? "not enough" : "too many";
      throw new TemplateError(`${what} values to unpack (expected ${items.length})`);
    }
    for (const [at, assign] of items.entries()) assign(frame, values[at]);
  };
}

function compileFor(statement: Extract<Statement, { type: "for" }>, scope: Scope): Run {
  const { line, recursive } = statement;
  const items = compileExpression(statement.items, scope);
  const testing = new Scope(scope);
  const assignTested = compileTarget(statement.target, testing);
  const test = statement.test && compileExpression(statement.test, testing);
  const within = new Scope(scope);
  const assign = compileTarget(statement.target, within);
  const loopSlot = within.declare("loop");
  const run = compileBody(statement.body, within);
  const usesLoop = recursive || within.used.has("loop");
  const otherwise = compileBody(statement.otherwise, new Scope(scope));
  const chosen = (frame: Frame, given: readonly Value[]) => {
    if (!test) return given;
    return given.filter((item) => {
      const own = inner(frame);
      assignTested(own, item);
      return truth(test(own));
    });
  };
  const loopOver = (frame: Frame, given: Value, output: Output, depth: number): End => {
    const list = chosen(frame, listOf(given));
    if (list.length === 0) return otherwise(inner(frame), output);
    const again: Callable | null = recursive
      ? ([more]) => {
          const part = { text: "" };
          loopOver(frame, more, part, depth + 1);
          return part.text;
        }
      : null;
    const loop = usesLoop ? new Loop(list, depth, again) : null;
    for (let at = 0; at < list.length; at++) {
      const own = inner(frame);
      if (loop) {
        loop.at = at;
        own.slots[loopSlot] = loop;
      }
      assign(own, list[at]);
      if (run(own, output) === "break") break;
    }
    return "";
  };
  return (frame, output) => {
    frame.rendering.line = line;
    return loopOver(frame, items(frame), output, 1);
  };
}

/** Makes the macro in the frame in which it is defined. */
function compileMacro(
  name: string,
  { names, defaults }: Parameters,
  body: Statement[],
  scope: Scope,
): (frame: Frame) => Callable {
  const within = new Scope(scope);
  const slots = names.map((parameter) => within.declare(parameter));
  const [more, moreNamed, caller] = ["varargs", "kwargs", "caller"].map((extra) =>
    within.declare(extra),
  ) as [number, number, number];
  const first = names.length - defaults.length;
  const others: (Evaluate | null)[] = names.map((_, at) =>
    at < first ? null : compileExpression(defaults[at - first] as Expression, within),
  );
  const text = compileText(body, within);
  return (frame) => (positional, named) => {
    const own = inner(frame);
    const extra = new Map(named);
    const given = named.get("caller");
    if (given !== undefined) own.slots[caller] = given;
    extra.delete("caller");
    for (const parameter of names) extra.delete(parameter);
    if (positional.length > names.length && !within.used.has("varargs")) {
      throw new TemplateError(`macro '${name}' takes not more than ${names.length} argument(s)`);
    }
    const [unknown] = extra.keys();
    if (unknown !== undefined && !within.used.has("kwargs")) {
      throw new TemplateError(`macro '${name}' takes no keyword argument '${unknown}'`);
    }
    own.slots[more] = Tuple.of(...positional.slice(names.length));
    own.slots[moreNamed] = dictOf(extra);
    const values = bound(
      names,
      positional.slice(0, names.length),
      new Map([...named].filter(([key]) => names.includes(key))),
    );
    for (const [at, slot] of slots.entries()) {
      const missing = new Undefined(`parameter '${names[at]}' was not provided`);
      own.slots[slot] = values[at] ?? others[at]?.(own) ?? (values[at] === null ? null : missing);
    }
    return text(own);
  };
}

function dictOf(named: Named): Dict {
  const dict = new Dict();
  for (const [name, value] of named) dict.set(name, value);
  return dict;
}

function compileCallBlock(
  statement: Extract<Statement, { type: "call block" }>,
  scope: Scope,
): Run {
  const { call, parameters, body } = statement;
  if (call.type !== "call") throw new TemplateError("expected call");
  const caller = compileMacro("caller", parameters, body, scope);
  const within = new Scope(scope);
  const slot = within.declare(FILTERED);
  const named: [string, Expression][] = [
    ...call.args.named,
    ["caller", { type: "name", name: FILTERED }],
  ];
  const text = compileExpression({ ...call, args: { ...call.args, named } }, within);
  return (frame, output) => {
    const own = inner(frame);
    own.slots[slot] = caller(frame);
    output.text += textOf(text(own));
    return "";
  };
}

function compileWith({ targets, body }: Extract<Statement, { type: "with" }>, scope: Scope): Run {
  const values = targets.map(([, value]) => compileExpression(value, scope));
  const within = new Scope(scope);
  const assigns = targets.map(([target]) => compileTarget(target, within));
  const run = compileBody(body, within);
  return (frame, output) => {
    const own = inner(frame);
    for (const [at, assign] of assigns.entries()) assign(own, values[at]?.(frame));
    return run(own, output);
  };
}
