import { MAX_JSON_DEPTH } from "../../lib/is-deeper.ts";
import { TestsUnreadable } from "./tests-unreadable.ts";

/** Nodes of lists and trees, as the driver makes them of a list of their values. */
const NODES = new Set(["list_node", "tree_node"]);

const ESCAPE = /\\(U[\da-fA-F]{8}|u[\da-fA-F]{4}|x[\da-fA-F]{2}|[0-7]{1,3}|[\s\S])/g;
/** As Python reads them; a backslash before anything else stays. */
const ESCAPES: Record<string, string> = {
  ...{ n: "\n", t: "\t", r: "\r", a: "\x07", b: "\b", f: "\f", v: "\v" },
  ...{ "\\": "\\", "'": "'", '"': '"', "\n": "" },
};

export type AssertedCall = { args: unknown[] | Record<string, unknown>; expected: unknown };

/**
 * Tests that are written as Python, as sets of LeetCode problems have them, without running any of it:
 *
 *     def check(candidate):
 *         assert candidate(nums = [2,7], target = 9) == [0,1]
 *         assert is_same_list(candidate(head = list_node([1,2])), list_node([2,1]))
 *
 *     check(Solution().twoSum)
 *
 * @throws TestsUnreadable where something else is asserted
 */
export function assertedCalls(source: string): { name: string; calls: AssertedCall[] } {
  const name = /^check\((?:Solution\(\)\.)?(\w+)\)\s*$/m.exec(source)?.[1];
  if (name === undefined) throw new TestsUnreadable("`functional` does not say what it checks");
  const calls = source
    .replace(/^check\(.*$/m, "")
    .split(/^[ \t]+assert /m)
    .slice(1)
    .map((assertion) => new PythonReader(assertion).assertion());
  return { name, calls };
}

/**
 * The value that a text writes as Python would; undefined where it is other text.
 * @param sets whether a set is read, as the list of its values
 */
export function pythonValue(text: string, { sets = false } = {}): unknown {
  try {
    return new PythonReader(text, sets).whole();
  } catch (error) {
    if (error instanceof TestsUnreadable) return undefined;
    throw error;
  }
}

type Call = { callee: string; args: unknown[]; keywords: Record<string, unknown> };

class PythonReader {
  readonly #text: string;
  #at = 0;
  #depth = 0;
  /** Functions return sets, and none can be given to one. */
  #sets = false;

  constructor(text: string, sets = false) {
    this.#text = text;
    this.#sets = sets;
  }

  /** `candidate(…) == value`, or `is_same_…(candidate(…), value)`. */
  assertion(): AssertedCall {
    const first = this.#word();
    let call: Call;
    let expected: unknown;
    if (first === "candidate") {
      call = this.#call(first);
      this.#expect("==");
      this.#sets = true;
      expected = this.#value();
    } else {
      if (!/^is_same_(list|tree)$/.test(first)) throw this.#unreadable();
      this.#expect("(");
      call = this.#call(this.#word());
      this.#expect(",");
      expected = this.#value();
      this.#expect(")");
    }
    if (call.callee !== "candidate" || this.#next() !== "") throw this.#unreadable();
    const named = Object.keys(call.keywords).length > 0;
    if (named && call.args.length > 0) throw this.#unreadable();
    return { args: named ? call.keywords : call.args, expected: plainNode(expected) };
  }

  whole(): unknown {
    const value = this.#value();
    if (this.#next() !== "") throw this.#unreadable();
    return value;
  }

  #call(callee: string): Call {
    const call: Call = { callee, args: [], keywords: {} };
    this.#expect("(");
    while (!this.#takes(")")) {
      const name = this.#match(/(\w+)\s*=(?!=)/y);
      if (name !== undefined) call.keywords[name] = this.#value();
      else call.args.push(this.#value());
      if (!this.#takes(",") && this.#next() !== ")") throw this.#unreadable();
    }
    return call;
  }

  #value(): unknown {
    if (++this.#depth > MAX_JSON_DEPTH) throw this.#unreadable();
    const value = this.#valueAtDepth();
    this.#depth--;
    return value;
  }

  #valueAtDepth(): unknown {
    switch (this.#next()) {
      case "[":
        return this.#items("[", "]");
      case "(":
        return this.#tuple();
      case "{":
        return this.#braces();
      case "'":
      case '"':
        return this.#string();
    }
    const number = this.#match(/([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)/iy);
    if (number !== undefined) return wholeOrFloat(number);
    const word = this.#word();
    if (word === "None") return null;
    if (word === "True" || word === "False") return word === "True";
    if (!NODES.has(word)) throw this.#unreadable();
    const { args } = this.#call(word);
    return { [`__${word}__`]: args[0] };
  }

  #items(open: string, close: string): unknown[] {
    this.#expect(open);
    const items: unknown[] = [];
    while (!this.#takes(close)) {
      items.push(this.#value());
      if (!this.#takes(",") && this.#next() !== close) throw this.#unreadable();
    }
    return items;
  }

  /** `(1)` is 1, and `(1,)` a tuple. */
  #tuple(): unknown {
    const items = this.#items("(", ")");
    const isTuple = items.length !== 1 || /,\s*\)$/.test(this.#text.slice(0, this.#at));
    return isTuple ? items : items[0];
  }

  /** A dictionary, or a set as the list of its values. */
  #braces(): Record<string, unknown> | unknown[] {
    const start = this.#at;
    this.#expect("{");
    const entries: [string, unknown][] = [];
    while (!this.#takes("}")) {
      const key = this.#value();
      if (this.#sets && entries.length === 0 && this.#next() !== ":") {
        this.#at = start;
        return this.#items("{", "}");
      }
      this.#expect(":");
      entries.push([String(key), this.#value()]);
      if (!this.#takes(",") && this.#next() !== "}") throw this.#unreadable();
    }
    return Object.fromEntries(entries);
  }

  #string(): string {
    const source = this.#match(/("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')/y);
    if (source === undefined) throw this.#unreadable();
    return source.slice(1, -1).replace(ESCAPE, (whole, code: string) => {
      if (code === "N") throw this.#unreadable();
      if (/^[0-7]/.test(code)) return String.fromCodePoint(Number.parseInt(code, 8));
      if (code.length > 1) return String.fromCodePoint(Number.parseInt(code.slice(1), 16));
      return ESCAPES[code] ?? whole;
    });
  }

  #word(): string {
    return this.#match(/([A-Za-z_]\w*)/y) ?? "";
  }

  #match(pattern: RegExp): string | undefined {
    this.#next();
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text);
    if (!found) return undefined;
    this.#at = pattern.lastIndex;
    return found[1];
  }

  /** The character that comes after blanks; empty at the end. */
  #next(): string {
    while (/\s/.test(this.#text[this.#at] ?? "")) this.#at++;
    return this.#text[this.#at] ?? "";
  }

  #takes(char: string): boolean {
    if (this.#next() !== char) return false;
    this.#at++;
    return true;
  }

  #expect(text: string): void {
    this.#next();
    if (!this.#text.startsWith(text, this.#at)) throw this.#unreadable();
    this.#at += text.length;
  }

  #unreadable(): TestsUnreadable {
    const shown = JSON.stringify(this.#text.trim().slice(0, 120));
    return new TestsUnreadable(`what is asserted can't be read: ${shown}`);
  }
}

/** Whole numbers keep all their digits. */
function wholeOrFloat(text: string): number | bigint {
  const value = Number(text);
  return Number.isSafeInteger(value) || !/^[+-]?\d{1,4300}$/.test(text)
    ? value
    : BigInt(text.replace("+", ""));
}

/** As the driver writes a node that a function returns: its values, without what is missing at the end. */
function plainNode(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const node = Object.entries(value).find(([key]) => /^__\w+_node__$/.test(key));
  if (!node || !Array.isArray(node[1])) return value;
  const values = node[1] as unknown[];
  const end = values.findLastIndex((each) => each !== null);
  return end < 0 ? null : values.slice(0, end + 1);
}
