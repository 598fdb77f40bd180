const ESCAPE = /\\(\n|[\\'"abfnrtv]|[0-7]{1,3}|x[\da-fA-F]{2}|u[\da-fA-F]{4}|U[\da-fA-F]{8})/g;
const CHARS: Record<string, string> = {
  ...{ a: "\x07", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t", v: "\v", "\n": "" },
};

/** The text of a string literal; like Python's, it keeps the backslash of an escape that is none. */
export function unescaped(literal: string): string {
  return literal.slice(1, -1).replace(ESCAPE, (_, code: string) => {
    const known = CHARS[code];
    if (known !== undefined) return known;
    if (/^[xuU]/.test(code)) return String.fromCodePoint(Number.parseInt(code.slice(1), 16));
    return /^[0-7]/.test(code) ? String.fromCharCode(Number.parseInt(code, 8)) : code;
  });
}
