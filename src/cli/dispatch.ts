import { type ErrorCode, ServiceError } from "../errors.ts";
import { terminalText } from "../lib/terminal-text.ts";
import { type CliContext, type Command, EXIT } from "./command.ts";
import { COMMANDS } from "./commands.ts";
import { meant, UsageError } from "./flags.ts";

/** Runs what a command line asks for. Every end has its exit code; a failure is one line on standard error. */
export async function dispatch(argv: string[], context: CliContext): Promise<number> {
  const [name = "help", ...rest] = argv;
  if (name === "help" || name === "--help" || name === "-h") return help(rest);
  const wanted = name === "--version" ? "version" : name;
  const command = commandNamed(wanted);
  if (!command) return unknown(name);
  // What follows `--` is no flag.
  const end = rest.indexOf("--");
  const flags = end < 0 ? rest : rest.slice(0, end);
  if (flags.includes("--help") || flags.includes("-h")) return help([wanted]);
  try {
    return await command.run(rest, context);
  } catch (error) {
    return fail(command, error);
  }
}

/** Of the request that a person made, wherever it was found out: by the command itself or by the service. */
const USAGE: ReadonlySet<ErrorCode> = new Set([
  ...(["bad_json", "invalid_field", "unknown_field", "unknown_task_kind"] as const),
  ...(["model_folder_invalid", "task_module_invalid", "address_forbidden"] as const),
  ...(["data_dir_unusable", "data_dir_in_use", "image_not_found", "image_invalid"] as const),
  "image_cache_unusable",
]);

function fail(command: Command, error: unknown): number {
  const say = (text: string) => process.stderr.write(`rolloutd ${command.name}: ${text}\n`);
  if (error instanceof UsageError) {
    say(`${oneLine(error.message)}; see \`rolloutd ${command.name} --help\``);
    return EXIT.usage;
  }
  if (error instanceof ServiceError) {
    say(oneLine(error.mend ? `${error.message}; ${error.mend}` : error.message));
    if (error.code === "server_unreachable") return EXIT.unreachable;
    if (error.code === "data_damaged") return EXIT.damaged;
    return USAGE.has(error.code) ? EXIT.usage : EXIT.failed;
  }
  say("this is a bug, please report it");
  process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
  return EXIT.bug;
}

/** The words of a file or a server in it must not move the cursor. */
function oneLine(text: string): string {
  return terminalText(text).replace(/\s*\n\s*/g, " ");
}

function help([name]: string[]): number {
  const command = name === undefined ? undefined : commandNamed(name);
  if (name !== undefined && !command) return unknown(name);
  process.stdout.write(command?.help ?? overview());
  return EXIT.done;
}

function unknown(name: string): number {
  const names = COMMANDS.map((one) => one.name);
  const hint = meant(name, names);
  process.stderr.write(`rolloutd: there is no command "${oneLine(name)}"${hint}\n\n${overview()}`);
  return EXIT.usage;
}

function commandNamed(name: string): Command | undefined {
  return COMMANDS.find((candidate) => candidate.name === name);
}

function overview(): string {
  const width = Math.max(...COMMANDS.map(({ name }) => name.length));
  const lines = COMMANDS.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`);
  return `rolloutd: rollouts of LLM agents as a service\n\nUsage: rolloutd COMMAND [flags]\n\n${lines.join("\n")}\n\n\`rolloutd COMMAND --help\` tells more.\n`;
}
