import type { Message } from "../../inference/engine.ts";

const SYSTEM = `You solve mathematical problems. You have a Python session with numpy and sympy in an isolated sandbox without network.`;

const METHOD = `Solve the problem below.

1. Plan: use the think tool to set out an approach.
2. Compute: use execute_ipython_cell; the session keeps its variables.
3. Verify: check the result in another way before you answer.
4. Answer: call finish with a message that gives the final answer as \\boxed{...}.

Problem:
`;

export function mathPrompt(problem: string): Message[] {
  return [
    { role: "system", content: SYSTEM },
    { role: "user", content: METHOD + problem },
  ];
}
