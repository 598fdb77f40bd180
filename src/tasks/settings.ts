/** What the operator has set for task kinds, as plain data: it crosses to the workers. */
export type TaskSettings = {
  /** Image references by task kind, with `{field}` for what comes from the row. */
  images: Record<string, string>;
};
