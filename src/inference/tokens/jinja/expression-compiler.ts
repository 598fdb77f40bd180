import type { Filter } from "./arguments.ts";
import { compute, negated } from "./arithmetic.ts";
import type { CallArguments, Comparison, Expression } from "./ast.ts";
import { Fields, getAttribute, getItem, slice, UNSUPPORTED_METHODS } from "./attributes.ts";
import { contains, equal, order } from "./compare.ts";
import { FILTERS } from "./filters.ts";
import type { Frame, Scope } from "./frame.ts";
import { OTHER_FILTERS, TESTS } from "./tests.ts";
import { textOf } from "./text.ts";
import {
  type Callable,
  Dict,
  isNumber,
  itemsOf,
  type Named,
  NO_NAMES,
  TemplateError,
  Tuple,
  truth,
  typeName,
  Undefined,
  type Value,
} from "./values.ts";

export type Evaluate = (frame: Frame) => Value;

/** @throws TemplateError that names the line of what is not supported */
export function compileExpression(expression: Expression, scope: Scope): Evaluate {
  const compile = (inner: Expression) => compileExpression(inner, scope);
  switch (expression.type) {
    case "constant": {
      const { value } = expression;
      return () => value;
    }
    case "name":
      return scope.reader(expression.name);
    case "list":
    case "tuple": {
      const items = expression.items.map(compile);
      if (expression.type === "list") return (frame) => items.map((item) => item(frame));
      return (frame) => Tuple.of(...items.map((item) => item(frame)));
    }
    case "dict": {
      const entries = expression.entries.map(
        ([key, item]) => [compile(key), compile(item)] as const,
      );
      return (frame) => {
        const dict = new Dict();
        for (const [key, item] of entries) dict.set(key(frame), item(frame));
        return dict;
      };
    }
    case "attribute": {
      const of = compile(expression.of);
      const { name } = expression;
      return (frame) => getAttribute(of(frame), name);
    }
    case "item": {
      const of = compile(expression.of);
      const { key } = expression;
      const at = compile(key);
      return (frame) => getItem(of(frame), at(frame));
    }
    case "slice": {
      const of = compile(expression.of);
      const [start, stop, step] = expression.parts.map((part) => part && compile(part));
      return (frame) => slice(of(frame), start?.(frame), stop?.(frame), step?.(frame));
    }
    case "call":
      return compileCall(expression, scope);
    case "filter": {
      if (expression.of === null) throw new TemplateError("a filter needs a value");
      const filter = found(FILTERS, "filter", expression, scope);
      return applied(filter, compile(expression.of), compileArguments(expression.args, scope));
    }
    case "test": {
      const test = found(TESTS, "test", expression, scope);
      return applied(test, compile(expression.of), compileArguments(expression.args, scope));
    }
    case "compute": {
      const [left, right] = [compile(expression.left), compile(expression.right)];
      const { operator } = expression;
      return (frame) => compute(operator, left(frame), right(frame));
    }
    case "concat": {
      const parts = expression.parts.map(compile);
      return (frame) => {
        let text = "";
        for (const part of parts) text += textOf(part(frame));
        return text;
      };
    }
    case "compare":
      return compileComparison(compile(expression.first), expression.rest, scope);
    case "not": {
      const of = compile(expression.of);
      return (frame) => !truth(of(frame));
    }
    case "negate": {
      const of = compile(expression.of);
      return (frame) => negated(of(frame));
    }
    case "plus": {
      const of = compile(expression.of);
      return (frame) => unchanged(of(frame));
    }
    case "and":
    case "or": {
      const [left, right] = [compile(expression.left), compile(expression.right)];
      const goesOn = expression.type === "and";
      return (frame) => {
        const value = left(frame);
        return truth(value) === goesOn ? right(frame) : value;
      };
    }
    case "condition":
      return compileCondition(expression, scope);
  }
}

function compileCondition(
  { test, yes, no }: Extract<Expression, { type: "condition" }>,
  scope: Scope,
): Evaluate {
  const isTrue = compileExpression(test, scope);
  const [then, otherwise] = conditionally(scope, () => [
    compileExpression(yes, scope),
    no && compileExpression(no, scope),
  ]);
  const hint = "the inline if-expression evaluated to false and no else section was defined.";
  return (frame) => {
    if (truth(isTrue(frame))) return then(frame);
    return otherwise ? otherwise(frame) : new Undefined(hint);
  };
}

/** In a branch Jinja takes names of filters and tests that it does not know, until they are used. */
export function conditionally<T>(scope: Scope, work: () => T): T {
  const was = scope.isConditional;
  scope.isConditional = true;
  const done = work();
  scope.isConditional = was;
  return done;
}

function unchanged(value: Value): Value {
  if (isNumber(value)) return typeof value === "boolean" ? Number(value) : value;
  if (value instanceof Undefined) value.fail();
  throw new TemplateError(`bad operand type for unary +: '${typeName(value)}'`);
}

type Arguments = { positional(frame: Frame): Value[]; named(frame: Frame): Named };

function found(
  known: Record<string, Filter>,
  kind: "filter" | "test",
  { name, line }: { name: string; line: number },
  scope: Scope,
): Filter {
  const filter = Object.hasOwn(known, name) ? known[name] : undefined;
  if (filter) return filter;
  if (kind === "filter" && OTHER_FILTERS.has(name)) {
    throw new TemplateError(`line ${line}: the filter "${name}" is not supported`);
  }
  const message = `No ${kind} named '${name}'.`;
  if (!scope.isConditional) throw new TemplateError(`line ${line}: ${message}`);
  return () => {
    throw new TemplateError(message);
  };
}

function applied(filter: Filter, of: Evaluate, args: Arguments | null): Evaluate {
  if (!args) return (frame) => filter(of(frame), [], NO_NAMES);
  return (frame) => filter(of(frame), args.positional(frame), args.named(frame));
}

function compileArguments(args: CallArguments, scope: Scope): Arguments | null {
  const positional = args.positional.map((item) => compileExpression(item, scope));
  const named = args.named.map(([name, item]) => [name, compileExpression(item, scope)] as const);
  const spread = args.spread && compileExpression(args.spread, scope);
  const spreadNamed = args.spreadNamed && compileExpression(args.spreadNamed, scope);
  if (positional.length === 0 && named.length === 0 && !spread && !spreadNamed) return null;
  return {
    positional(frame) {
      const values = positional.map((item) => item(frame));
      return spread ? [...values, ...itemsOf(spread(frame))] : values;
    },
    named(frame) {
      if (named.length === 0 && !spreadNamed) return NO_NAMES;
      const values = new Map(named.map(([name, item]) => [name, item(frame)]));
      const more = spreadNamed?.(frame);
      if (more instanceof Dict)
        for (const [name, item] of more.entries()) values.set(textOf(name), item);
      return values;
    },
  };
}

function compileCall(
  { of, args, line }: Extract<Expression, { type: "call" }>,
  scope: Scope,
): Evaluate {
  if (of.type === "attribute" && UNSUPPORTED_METHODS.has(of.name)) {
    throw new TemplateError(`line ${line}: the method "${of.name}" is not supported`);
  }
  const callee = compileExpression(of, scope);
  const given = compileArguments(args, scope);
  return (frame) => {
    const target = callee(frame);
    return callValue(target, given?.positional(frame) ?? [], given?.named(frame) ?? NO_NAMES);
  };
}

export function callValue(target: Value, positional: Value[], named: Named): Value {
  if (typeof target === "function") return (target as Callable)(positional, named);
  if (target instanceof Undefined) target.fail();
  if (target instanceof Fields && target.call) return target.call(positional, named);
  throw new TemplateError(`'${typeName(target)}' object is not callable`);
}

function compileComparison(
  first: Evaluate,
  rest: [Comparison, Expression][],
  scope: Scope,
): Evaluate {
  const steps = rest.map(([operator, right]) => {
    return { operator, right: compileExpression(right, scope) };
  });
  const [only] = steps;
  if (only && steps.length === 1) {
    const { operator, right } = only;
    return (frame) => holds(operator, first(frame), right(frame));
  }
  return (frame) => {
    let left = first(frame);
    for (const { operator, right } of steps) {
      const value = right(frame);
      if (!holds(operator, left, value)) return false;
      left = value;
    }
    return true;
  };
}

function holds(operator: Comparison, left: Value, right: Value): boolean {
  if (operator === "==") return equal(left, right);
  if (operator === "!=") return !equal(left, right);
  if (operator === "in") return contains(right, left);
  if (operator === "not in") return !contains(right, left);
  const way = order(left, right, operator);
  if (Number.isNaN(way)) return false;
  if (operator === "<") return way < 0;
  if (operator === ">") return way > 0;
  return operator === "<=" ? way <= 0 : way >= 0;
}
