import { createLog } from "../telemetry/log.ts";
import { type Command, EXIT } from "./command.ts";
import { parseFlags, refuseExtra, refuseIdle } from "./flags.ts";
import { idleSettings } from "./idle-settings.ts";
import { type Service, startService } from "./service.ts";
import { configFrom, settingFlags, settingsHelp } from "./settings.ts";
import { stayAtInterrupt } from "./signals.ts";

export const serveCommand: Command = {
  name: "serve",
  summary: "run the service on this node (TCP and Unix socket)",
  help: `Usage: rolloutd serve [flags]

Runs until SIGTERM, SIGINT, or Slurm's early signal (SIGUSR1, SIGUSR2): then it takes no new work, lets
running jobs end for --drain-ms, and hands the rest back to its queue, where the next start goes on with
them. A second signal skips the wait. Exit code 0: nothing was cut; 75: jobs were handed back.

  --config FILE  settings as TOML
  --json         print the addresses as one JSON object
${settingsHelp()}`,
  async run(argv, context) {
    const { values, positionals } = parseFlags(argv, {
      ...settingFlags(),
      json: { type: "boolean" },
    });
    refuseExtra(positionals, 0);
    const config = configFrom(values);
    refuseIdle(values, idleSettings(config));
    const log = createLog(config.log_level);
    const service = await startService(config, log, context);
    // Who reads the addresses may end it at once.
    const { first, second } = stopSignals();
    announce(service, values.json === true);
    const signal = await first;
    log.info("draining", { signal, drain_ms: config.drain_ms });
    const { handedBack } = await service.shutDown(config.drain_ms, second);
    log.info("stopped", { handed_back: handedBack });
    return handedBack === 0 ? EXIT.done : EXIT.cut;
  },
};

function announce({ url, socket }: Service, asJson: boolean): void {
  const line = asJson
    ? JSON.stringify({ url, socket, pid: process.pid })
    : `rolloutd listens on ${url} and ${socket}`;
  process.stdout.write(`${line}\n`);
}

/** The last two are what Slurm is told to send ahead of a job's end (`--signal=B:USR1@120`). */
const STOP_SIGNALS = ["SIGTERM", "SIGINT", "SIGUSR1", "SIGUSR2"] as const;

/**
 * The first two, for which one listener stays: without one, a signal that comes right behind another would end the
 * process. `scancel` sends two at once, its own and the batch script's.
 */
function stopSignals() {
  stayAtInterrupt();
  const first = Promise.withResolvers<NodeJS.Signals>();
  const second = Promise.withResolvers<void>();
  let count = 0;
  for (const name of STOP_SIGNALS) {
    process.on(name, () => (count++ === 0 ? first.resolve(name) : second.resolve()));
  }
  return { first: first.promise, second: second.promise };
}
