/**
 * Why our verdict is not the one that a public grader's test expects, by the key that `bench verify-math` prints: the
 * start of SHA-256 over truth, line end and answer.
 */
export const DISAGREEMENTS: Record<string, string> = {};
