import { backendsCommand } from "./backends.ts";
import { clientCommand } from "./client.ts";
import type { Command } from "./command.ts";
import { doctorCommand } from "./doctor.ts";
import { imagesCommand } from "./images.ts";
import { jobsCommand } from "./jobs.ts";
import { prorlCommand } from "./prorl.ts";
import { runCommand } from "./run.ts";
import { schemaCommand } from "./schema.ts";
import { serveCommand } from "./serve.ts";
import { simulateCommand } from "./simulate.ts";
import { verifyTemplateCommand } from "./verify-template.ts";
import { versionCommand } from "./version.ts";

/** In the order of the help. */
export const COMMANDS: readonly Command[] = [
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
