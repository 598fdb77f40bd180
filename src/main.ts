import { type CliContext, EXIT } from "./cli/command.ts";
import { dispatch } from "./cli/dispatch.ts";
import { leaveAtInterrupt } from "./cli/signals.ts";
import type { FromWorker, ToWorker } from "./pipeline/messages.ts";

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

// Whoever reads what is printed may have read enough, as `head` does: that is no failure.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit();
  process.stderr.write(`rolloutd: standard output can't be written: ${error.message}\n`);
  process.exit(EXIT.failed);
});
process.stderr.on("error", () => {});

leaveAtInterrupt();
process.exitCode = await dispatch(process.argv.slice(2), context);
