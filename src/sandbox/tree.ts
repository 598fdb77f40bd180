/** One piece of a folder's content, on its way out of a sandbox or into one. Paths lie below that folder. */
export type TreePart =
  | { kind: "folder"; path: string; mode: number }
  | { kind: "file"; path: string; mode: number }
  /** Of the file that was named last. */
  | { kind: "data"; bytes: Uint8Array }
  | { kind: "link"; path: string; target: string }
  | ({ kind: "left" } & LeftPath);

/** What is not carried, and why: `fifo`, `socket`, `device`, `unreadable`, `changed`, `link`, or a `name` that is no UTF-8. */
export type LeftPath = { path: string; why: string };

/** Where a tree comes from: a folder of the host's, the contents of files by their paths, or another sandbox. */
export type TreeSource =
  | { folder: string }
  | { files: Record<string, string | Uint8Array> }
  | { parts: AsyncIterable<TreePart> };

export type TreeLimits = {
  /** Of all files together, holes included. */
  maxBytes: number;
  maxEntries: number;
};

export type TreeTotals = { files: number; bytes: number; left: LeftPath[] };
