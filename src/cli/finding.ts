/** `missing` keeps sandboxed rollouts from running; `note` is worth knowing. */
export type Finding = {
  check: string;
  status: "ok" | "note" | "missing";
  detail: string;
  mend?: string;
};
