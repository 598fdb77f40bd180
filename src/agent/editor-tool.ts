import { Editor } from "./editor.ts";
import { EditorError } from "./editor-error.ts";
import { EditorFiles } from "./editor-files.ts";
import {
  mistake,
  needSandbox,
  requireText,
  type Tool,
  type ToolContext,
  type ToolResult,
  toolSchema,
} from "./tool.ts";

const COMMANDS = ["view", "create", "str_replace", "insert", "undo_edit"];

const DESCRIPTION = `View, create and edit plain text files.
* State is kept between calls, so that \`undo_edit\` takes back the last edit of a file.
* \`view\` of a file shows it with line numbers, of a directory what is up to 2 levels deep, without hidden items.
* \`create\` fails if the file exists. \`str_replace\` needs \`old_str\` to be in the file exactly once, character by character.
* Long output is cut and marked with \`<response clipped>\`.`;

export function editorTool(context: ToolContext): Tool {
  let editor: Editor | undefined;
  const properties = {
    command: { type: "string", description: "What to do.", enum: COMMANDS },
    path: { type: "string", description: "Absolute path of the file or directory." },
    file_text: { type: "string", description: "For create: the content of the file." },
    old_str: { type: "string", description: "For str_replace: the text to replace." },
    new_str: { type: "string", description: "For str_replace and insert: the new text." },
    insert_line: { type: "integer", description: "For insert: the line to insert after." },
    view_range: {
      type: "array",
      description: "For view: first and last line; [11, -1] shows all from line 11 on.",
      items: { type: "integer" },
    },
  };
  return {
    schema: toolSchema("str_replace_editor", DESCRIPTION, properties, ["command", "path"]),
    async run(args) {
      const unknown = Object.keys(args).find((name) => !(name in properties));
      if (unknown) return mistake(`str_replace_editor has no argument "${unknown}".`);
      const command = requireText(args, "command");
      if (typeof command !== "string") return command;
      const path = requireText(args, "path");
      if (typeof path !== "string") return path;
      editor ??= new Editor(editorFiles(context));
      return await told(() => edit(editor as Editor, command, path, args));
    },
  };
}

function editorFiles(context: ToolContext): EditorFiles {
  const sandbox = needSandbox(context, "str_replace_editor");
  return new EditorFiles(sandbox, context.limits.toolTimeoutMs, context.signal);
}

async function told(work: () => Promise<string>): Promise<ToolResult> {
  try {
    return { text: await work(), ok: true };
  } catch (error) {
    if (!(error instanceof EditorError)) throw error;
    return { text: `ERROR:\n${error.message}`, ok: false };
  }
}

async function edit(
  editor: Editor,
  command: string,
  path: string,
  args: Record<string, unknown>,
): Promise<string> {
  if (!path.startsWith("/")) {
    const hint = "The path should be an absolute path, starting with `/`.";
    throw EditorError.invalid("path", path, hint);
  }
  switch (command) {
    case "view":
      return await editor.view(path, parsed(args.view_range));
    case "create":
      return await editor.create(path, text(args, command, "file_text"));
    case "str_replace": {
      const fresh = args.new_str == null ? "" : text(args, command, "new_str");
      return await editor.replace(path, text(args, command, "old_str"), fresh);
    }
    case "insert": {
      if (args.insert_line == null) throw EditorError.missing(command, "insert_line");
      const after = parsed(args.insert_line);
      return await editor.insert(path, after as number, text(args, command, "new_str"));
    }
    case "undo_edit":
      return await editor.undo(path);
    default:
      throw new EditorError(
        `Unrecognized command ${command}. The allowed commands for the str_replace_editor tool are: ${COMMANDS.join(", ")}`,
      );
  }
}

function text(args: Record<string, unknown>, command: string, name: string): string {
  const value = args[name];
  if (typeof value === "string") return value;
  if (value == null) throw EditorError.missing(command, name);
  throw EditorError.invalid(name, value, "It should be a string.");
}

/** Models that write arguments as text send numbers and lists within quotes. */
function parsed(value: unknown): unknown {
  if (value == null) return undefined;
  if (typeof value !== "string") return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}
