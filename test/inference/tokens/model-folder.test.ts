import { describe, expect, test } from "bun:test";
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { ServiceError } from "../../../src/errors.ts";
import type { ToolSchema } from "../../../src/inference/engine.ts";
import { loadTokenModel } from "../../../src/inference/tokens/token-model.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { BASH, folderOf, modelFolder } from "./models.ts";

async function failureOf(work: Promise<unknown>) {
  try {
    await work;
  } catch (error) {
    if (error instanceof ServiceError) return error.toBody();
    throw error;
  }
  throw new Error("it did not fail");
}

describe("a model folder", () => {
  test("without a tokenizer is refused with what to do", async () => {
    using dir = tempDir();
    expect(await failureOf(loadTokenModel(dir.path))).toMatchObject({
      code: "model_folder_invalid",
      message: `${dir.path} has no tokenizer.json`,
      mend: expect.stringContaining("save_pretrained"),
    });
  });

  test("whose file is not JSON is refused by that file's name", async () => {
    using dir = tempDir();
    await Bun.write(dir.file("tokenizer.json"), "version https://git-lfs.github.com/spec/v1\n");
    const { message, mend } = await failureOf(loadTokenModel(dir.path));
    expect(message).toStartWith(`${dir.path}/tokenizer.json: is not JSON`);
    expect(mend).toContain("fast tokenizer");
  });

  test("without a chat template is refused", async () => {
    using dir = tempDir();
    symlinkSync(join(folderOf("qwen3"), "tokenizer.json"), dir.file("tokenizer.json"));
    const { message } = await failureOf(loadTokenModel(dir.path));
    expect(message).toBe(`${dir.path} has no chat_template.jinja`);
  });

  test("whose template can't be parsed is refused", async () => {
    using dir = await modelFolder("{% for m in %}");
    const { message } = await failureOf(loadTokenModel(dir.path));
    expect(message).toStartWith(
      `${dir.path}/chat_template.jinja: the chat template can't be parsed`,
    );
  });

  test("may have several templates, and its own file wins over the configuration", async () => {
    using dir = await modelFolder("{{ 'file' }}{{ messages[0].content }}");
    const list = [
      { name: "default", template: "{{ 'config' }}" },
      { name: "other", template: "{{ 'other' }}{{ messages[-1].content }}" },
    ];
    await Bun.write(dir.file("tokenizer_config.json"), JSON.stringify({ chat_template: list }));
    const text = async (template?: string) => {
      const model = await loadTokenModel(dir.path, template === undefined ? {} : { template });
      return model.template.text.slice(4, 8);
    };
    expect([await text(), await text("other")]).toEqual(["file", "othe"]);
    expect(await failureOf(loadTokenModel(dir.path, { template: "none" }))).toMatchObject({
      message: `${dir.path} has no chat template "none"`,
      mend: "name one of them: default, other",
    });
  });

  test("has a template of its own for tools, where one is called so", async () => {
    using dir = await modelFolder("{{ 'plain ' + messages[0].content }}<|im_end|>");
    const calling =
      "{{ 'tools ' + messages[0].content }}{% for m in messages[1:] %}{{ m.content }}" +
      "{% for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>" +
      "{% endfor %}<|im_end|>{% endfor %}";
    const named = [{ name: "tool_use", template: calling }];
    await Bun.write(dir.file("tokenizer_config.json"), JSON.stringify({ chat_template: named }));
    const model = await loadTokenModel(dir.path);
    const rendered = (tools: ToolSchema[]) =>
      model.template.render([{ role: "user", content: "hi" }], tools, {
        addGenerationPrompt: true,
      });
    expect([rendered([]), rendered([BASH])]).toEqual(["plain hi<|im_end|>", "tools hi"]);
    expect(model.dialect).toBe("hermes");
    const plain = await loadTokenModel(dir.path, { template: "default" });
    expect(
      plain.template.render([{ role: "user", content: "hi" }], [BASH], {
        addGenerationPrompt: true,
      }),
    ).toBe("plain hi<|im_end|>");
  });
});
