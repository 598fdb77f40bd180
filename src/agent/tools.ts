import { bashTool } from "./bash-tool.ts";
import { editorTool } from "./editor-tool.ts";
import { ipythonTool } from "./ipython-tool.ts";
import { requireText, type Tool, type ToolContext, type ToolName, toolSchema } from "./tool.ts";

const FACTORIES: Record<ToolName, (context: ToolContext) => Tool> = {
  execute_bash: bashTool,
  execute_ipython_cell: ipythonTool,
  str_replace_editor: editorTool,
  think: thinkTool,
  finish: finishTool,
};

export const TOOL_NAMES = Object.keys(FACTORIES) as ToolName[];

export function createTools(names: readonly ToolName[], context: ToolContext): Tool[] {
  return names.map((name) => FACTORIES[name](context));
}

function thinkTool(): Tool {
  return {
    schema: toolSchema(
      "think",
      "Log a thought. It obtains no new information and changes nothing.",
      { thought: { type: "string", description: "The thought to log." } },
      ["thought"],
    ),
    run: async (args) => {
      const thought = requireText(args, "thought");
      if (typeof thought !== "string") return thought;
      return { text: "Your thought has been logged.", ok: true };
    },
  };
}

function finishTool(): Tool {
  return {
    schema: toolSchema(
      "finish",
      "End the work on the task with a final message.",
      { message: { type: "string", description: "The final message, with the answer." } },
      ["message"],
    ),
    run: async (args) => {
      const message = requireText(args, "message");
      if (typeof message !== "string") return message;
      return { text: "", ok: true, finish: message };
    },
  };
}
