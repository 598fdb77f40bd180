/** What became of one template's conversations. */
export type Row = {
  name: string;
  standIn: boolean;
  /** Why its folder is not taken; null where it is. */
  refused: string | null;
  /** Whether it shows tool calls; rollouts with tools are refused otherwise. */
  showsCalls: boolean;
  conversations: number;
  prompts: number;
  equal: number;
  sampled: number;
  forked: number;
  /** Conversations that Python's rendering refuses as well. */
  refusedByTemplate: number;
  forks: Map<string, number>;
  silent: string[];
  loud: string[];
};

/** The rows in Markdown, template by template. */
export function table(rows: readonly Row[]): string {
  const head = ["| template | prompts | verdict | forks |", "|---|---|---|---|"];
  return [...head, ...rows.map(line)].join("\n");
}

function line(row: Row): string {
  const cells = [
    row.standIn ? `${row.name} *` : row.name,
    String(row.prompts),
    verdict(row),
    forks(row),
  ];
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|").replaceAll("\n", " ")).join(" | ")} |`;
}

function verdict(row: Row): string {
  if (row.refused !== null) return `refused at registration: ${row.refused}`;
  const wrong = row.silent.length + row.loud.length;
  if (wrong > 0) return `**differs** in ${wrong} conversations: ${[...row.silent, ...row.loud][0]}`;
  const calls = row.showsCalls
    ? "works"
    : "works without tools; rollouts with tools are refused before their first turn, as it shows no calls";
  const own = row.refusedByTemplate;
  return own === 0
    ? calls
    : `${calls}; raises an error for ${own} of ${row.conversations} conversations, in Python too`;
}

function forks({ forks, forked, prompts }: Row): string {
  if (forked === 0) return "none";
  const kinds = new Map<string, number>();
  for (const [detail, times] of forks) {
    // Where two texts part is another place in each conversation.
    const kind = detail.startsWith("after ") ? "it shows differently what it has shown" : detail;
    kinds.set(kind, (kinds.get(kind) ?? 0) + times);
  }
  const most = [...kinds].toSorted(([, a], [, b]) => b - a).slice(0, 3);
  return `${forked} of ${prompts}: ${most.map(([kind, times]) => `${kind} (${times})`).join("; ")}`;
}
