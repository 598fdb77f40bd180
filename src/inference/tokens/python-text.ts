import { parse, tokenize } from "@huggingface/jinja";

type Node = { type: string; [field: string]: unknown };

const STR = "__str__";
const STATEMENTS = new Set([
  ...["Program", "Set", "If", "For", "Macro", "CallStatement", "FilterStatement"],
  ...["Break", "Continue", "Comment", "StringLiteral"],
]);

/**
 * The parsed template with Python's `str` wherever Jinja turns a value into text: `{{ x }}`, `x ~ y`
 * and `x | string`. The interpreter writes `true` and `["a"]` there, but engines run Python, and
 * models are trained on its `True` and `['a']`, which Qwen3-Coder's tools hold.
 */
export function withPythonText<P>(program: P): P {
  const rewrite = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(rewrite);
    if (!isNode(value)) return value;
    const node: Node = Object.assign(Object.create(Object.getPrototypeOf(value)), value);
    for (const [field, child] of Object.entries(value)) {
      const done = rewrite(child);
      node[field] = BLOCKS.has(field) && Array.isArray(done) ? done.map(asOutput) : done;
    }
    if (node.type === "FilterExpression" && isNode(node.filter) && isString(node.filter)) {
      return call(node.operand);
    }
    if (node.type === "BinaryExpression" && (node.operator as Node).value === "~") {
      node.left = call(node.left);
      node.right = call(node.right);
    }
    return node;
  };
  return rewrite(program) as P;
}

/** The variable that the rewritten template calls. */
export const PYTHON_TEXT = { [STR]: pythonStr };

const BLOCKS = new Set(["body", "alternate", "defaultBlock"]);

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value;
}

function isString({ type, value }: Node): boolean {
  return type === "Identifier" && value === "string";
}

function asOutput(statement: unknown): unknown {
  return isNode(statement) && !STATEMENTS.has(statement.type) ? call(statement) : statement;
}

/**
 * A call as the parser makes it, since the interpreter asks nodes for their class. The argument is in
 * a list, because functions are given bare values, but lists of typed ones.
 */
function call(argument: unknown): Node {
  const [node] = parse(tokenize(`{{ ${STR}([0]) }}`)).body as unknown as [Node];
  const [list] = node.args as [Node];
  list.value = [argument];
  return node;
}

/** A value of the interpreter. */
type Typed = { type: string; value: unknown };

function pythonStr([typed]: [Typed]): string {
  if (typed.type === "UndefinedValue") return "";
  return typed.type === "StringValue" ? (typed.value as string) : repr(typed);
}

function repr({ type, value }: Typed): string {
  if (type === "NullValue") return "None";
  if (type === "StringValue") return quoted(value as string);
  if (type === "BooleanValue") return value ? "True" : "False";
  if (typeof value === "number") return number(value, type === "FloatValue");
  if (Array.isArray(value)) return `[${value.map(repr).join(", ")}]`;
  if (!(value instanceof Map)) return String(value);
  const entries = [...(value as Map<string, Typed>)];
  return `{${entries.map(([key, typed]) => `${quoted(key)}: ${repr(typed)}`).join(", ")}}`;
}

/** Python changes to an exponent earlier, and writes it with two digits. */
function number(value: number, isFloat: boolean): string {
  if (isFloat && Number.isInteger(value)) return value.toFixed(1);
  const text = value !== 0 && Math.abs(value) < 1e-4 ? value.toExponential() : String(value);
  return text.replace(/e([+-])(\d)$/, "e$10$2");
}

const ESCAPES: Record<string, string> = { "\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\" };

function quoted(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const escaped = text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cn}\\]|[^\S ]/gu, (char) => {
    return ESCAPES[char] ?? escapeOf(char.codePointAt(0) ?? 0);
  });
  return quote + escaped.replaceAll(quote, `\\${quote}`) + quote;
}

function escapeOf(code: number): string {
  const hex = code.toString(16);
  if (code < 0x100) return `\\x${hex.padStart(2, "0")}`;
  return code < 0x10000 ? `\\u${hex.padStart(4, "0")}` : `\\U${hex.padStart(8, "0")}`;
}
