import { backendsCommand } from "./cli/backends.ts";
import { clientCommand } from "./cli/client.ts";
import { type CliContext, type Command, EXIT } from "./cli/command.ts";
import { doctorCommand } from "./cli/doctor.ts";
import { meant, UsageError } from "./cli/flags.ts";
import { imagesCommand } from "./cli/images.ts";
import { jobsCommand } from "./cli/jobs.ts";
import { prorlCommand } from "./cli/prorl.ts";
import { runCommand } from "./cli/run.ts";
import { schemaCommand } from "./cli/schema.ts";
import { serveCommand } from "./cli/serve.ts";
import { simulateCommand } from "./cli/simulate.ts";
import { verifyTemplateCommand } from "./cli/verify-template.ts";
import { versionCommand } from "./cli/version.ts";
import { ServiceError } from "./errors.ts";
import { print, printError } from "./lib/print.ts";
import type { FromWorker, ToWorker } from "./pipeline/messages.ts";

const COMMANDS: Command[] = [
  serveCommand,
  runCommand,
  jobsCommand,
  backendsCommand,
  imagesCommand,
  simulateCommand,
  doctorCommand,
  schemaCommand,
  verifyTemplateCommand,
  prorlCommand,
  clientCommand,
  versionCommand,
];

const context: CliContext = {
  spawnWorker(_stage, settings) {
    const worker = new Worker(new URL("./worker/entry.ts", import.meta.url));
    const post = (messages: ToWorker[]) => worker.postMessage(messages);
    post([{ type: "setup", settings }]);
    return {
      post,
      listen(onEvents, onCrash) {
        worker.onmessage = ({ data }: MessageEvent<FromWorker[]>) => onEvents(data);
        worker.onerror = (event) => onCrash(event.message);
        worker.addEventListener("close", () => onCrash("the thread ended"));
      },
      terminate: () => worker.terminate(),
    };
  },
};

async function main(argv: string[]): Promise<number> {
  const [name = "help", ...rest] = argv;
  if (name === "help" || name === "--help" || name === "-h") {
    const command = COMMANDS.find((candidate) => candidate.name === rest[0]);
    print(command?.help ?? overview());
    return EXIT.done;
  }
  const wanted = name === "--version" ? "version" : name;
  const command = COMMANDS.find((candidate) => candidate.name === wanted);
  if (!command) {
    const hint = meant(
      name,
      COMMANDS.map((one) => one.name),
    );
    printError(`rolloutd: there is no command "${name}"${hint}\n\n${overview()}`);
    return EXIT.usage;
  }
  if (rest.includes("--help") || rest.includes("-h")) {
    print(command.help);
    return EXIT.done;
  }
  return await runCommandSafely(command, rest);
}

async function runCommandSafely(command: Command, argv: string[]): Promise<number> {
  try {
    return await command.run(argv, context);
  } catch (error) {
    if (error instanceof UsageError) {
      const hint = `see \`rolloutd ${command.name} --help\``;
      printError(`rolloutd ${command.name}: ${error.message}; ${hint}\n`);
      return EXIT.usage;
    }
    if (error instanceof ServiceError) {
      const mend = error.mend ? `; ${error.mend}` : "";
      printError(`rolloutd ${command.name}: ${error.message}${mend}\n`);
      if (error.code === "server_unreachable") return EXIT.unreachable;
      return error.code === "data_damaged" ? EXIT.damaged : EXIT.failed;
    }
    printError(`rolloutd ${command.name}: this is a bug, please report it\n`);
    printError(`${error instanceof Error ? error.stack : String(error)}\n`);
    return EXIT.bug;
  }
}

function overview(): string {
  const width = Math.max(...COMMANDS.map(({ name }) => name.length));
  const lines = COMMANDS.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`);
  return `rolloutd: rollouts of LLM agents as a service\n\nUsage: rolloutd COMMAND [flags]\n\n${lines.join("\n")}\n\n\`rolloutd COMMAND --help\` tells more.\n`;
}

// Whoever reads what is printed may have read enough, as `head` does: that is no failure.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit();
  throw error;
});

process.exitCode = await main(process.argv.slice(2));
