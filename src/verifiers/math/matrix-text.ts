/** A matrix whose entries are still texts. `worked`: it is one matrix, perhaps with a factor, and no sum or product. */
export type MatrixText = { delimiters: string; rows: string[][]; worked: boolean };

const MATRIX = /\\begin\{([pbBvV]?matrix|array)\}(?:\{[lcr|]*\})?([\s\S]*?)\\end\{\1\}/y;
const MAX_MATRICES = 4;
const MAX_SIDE = 8;

/** Reads one matrix, or a sum of multiples and products of a few; null for everything else. */
export function matrixTextOf(text: string): MatrixText | null {
  const terms: { sign: string; factor: string; matrices: MatrixText[] }[] = [];
  let rest = 0;
  while (rest < text.length) {
    const open = text.indexOf("\\begin", rest);
    if (open < 0) return null;
    const before = text.slice(rest, open).replace(/\\cdot ?$/, "");
    const matrix = environmentAt(text, open);
    if (matrix === null) return null;
    const [, sign = "", factor = ""] = /^([-+]?)(.*)$/s.exec(before) ?? [];
    if (terms.length > 0 && sign === "" && factor === "")
      terms.at(-1)?.matrices.push(matrix.matrix);
    else if (terms.length > 0 && sign === "") return null;
    else terms.push({ sign, factor, matrices: [matrix.matrix] });
    rest = matrix.end;
  }
  const count = terms.reduce((total, term) => total + term.matrices.length, 0);
  if (count === 0 || count > MAX_MATRICES) return null;
  if (count === 1 && terms[0]?.sign === "" && terms[0].factor === "")
    return terms[0].matrices[0] ?? null;
  const values = terms.map(({ sign, factor, matrices }) => {
    const value = matrices.reduce<MatrixText | null>(
      (a, b) => a && times(a, b),
      identity(matrices),
    );
    return value && scaled(value, `${sign === "-" ? "-" : ""}${factor}`);
  });
  const total = values.reduce((a, b) => a && b && plus(a, b));
  return total && { ...total, worked: count === 1 };
}

function environmentAt(text: string, at: number): { matrix: MatrixText; end: number } | null {
  MATRIX.lastIndex = at;
  const match = MATRIX.exec(text);
  if (!match || (match[2] ?? "").includes("\\begin")) return null;
  const rows = (match[2] ?? "").split("\\\\").filter((row) => row !== "");
  const delimiters = match[1] === "vmatrix" ? "|" : match[1] === "Vmatrix" ? "||" : "";
  const matrix = { delimiters, rows: rows.map((row) => row.split("&")), worked: true };
  return { matrix, end: MATRIX.lastIndex };
}

/** Nothing to multiply with yet. */
function identity(matrices: MatrixText[]): MatrixText | null {
  return matrices.every(({ delimiters }) => delimiters === "")
    ? { delimiters: "", rows: [], worked: true }
    : null;
}

function times(a: MatrixText, b: MatrixText): MatrixText | null {
  if (a.rows.length === 0) return b;
  const small = [a, b].every(
    ({ rows }) => rows.length <= MAX_SIDE && rows.every((row) => row.length <= MAX_SIDE),
  );
  if (!small || !a.rows.every((row) => row.length === b.rows.length)) return null;
  const columns = (b.rows[0] ?? []).map((_entry, at) => b.rows.map((row) => row[at] ?? ""));
  if (columns.some((column) => column.includes(""))) return null;
  const rows = a.rows.map((row) =>
    columns.map((column) => row.map((entry, at) => `(${entry})(${column[at]})`).join("+")),
  );
  return { delimiters: "", rows, worked: false };
}

function scaled(matrix: MatrixText, factor: string): MatrixText {
  if (factor === "") return matrix;
  const by = factor === "-" ? "-" : `(${factor})`;
  return { ...matrix, rows: matrix.rows.map((row) => row.map((entry) => `${by}(${entry})`)) };
}

function plus(a: MatrixText, b: MatrixText): MatrixText | null {
  if (a.rows.length !== b.rows.length) return null;
  if (!a.rows.every((row, at) => row.length === b.rows[at]?.length)) return null;
  const rows = a.rows.map((row, at) =>
    row.map((entry, place) => `(${entry})+(${b.rows[at]?.[place]})`),
  );
  return { delimiters: "", rows, worked: false };
}
