import { expect, test } from "bun:test";
import { lastCodeBlock } from "../../src/verifiers/code-block.ts";

test.each([
  ["first\n```python\na = 1\n```\nthen\n```py\nb = 2\n\n```\nend", "b = 2\n"],
  ["```\nx\n```", "x"],
  ["  ```python\nx\n  ```", "x"],
  ["```python\nprint('''```''')\n```", "print('''```''')"],
  ["````md\n```python\nx\n```\n````", "```python\nx\n```"],
  ["```python\ndone\n```\n```python\ncut off", "done"],
  ["~~~\nx\n~~~", "x"],
])("of %j the last closed block counts", (text, block) => {
  expect(lastCodeBlock(text)).toBe(block);
});

test.each(["", "print(1)", "```python\nprint(1)", "`x`"])("%j has none", (text) => {
  expect(lastCodeBlock(text)).toBeNull();
});
