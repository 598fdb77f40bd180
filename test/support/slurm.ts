import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { hostname } from "node:os";
import { join, resolve } from "node:path";
import { tempDir } from "./temp-dir.ts";
import { waitFor } from "./wait-for.ts";

const SETUP = resolve(import.meta.dir, "../../scripts/setup.d/slurm");

type BatchJob = {
  script: string;
  args: string[];
  env: Record<string, string>;
};

/**
 * A Slurm of one node, of real daemons and commands, that belongs to whoever runs it, root or not: it needs no munge
 * (`auth/none`) and no cgroups. Its jobs are killed and its daemons ended with the scope.
 */
export async function startSlurm() {
  const prefix = await setUp();
  const dir = tempDir();
  const conf = dir.file("slurm.conf");
  const [ctldPort, nodePort] = await freePorts();
  for (const name of ["state", "spool"]) mkdirSync(dir.file(name));
  writeFileSync(conf, configuration(prefix, dir.path, { ctldPort, nodePort }));
  const PATH = `${join(prefix, "bin")}:${process.env.PATH}`;
  const ownEnv = { PATH, HOME: dir.path, SLURM_CONF: conf };

  const daemon = (name: string, ...flags: string[]) =>
    Bun.spawn([join(prefix, "bin", name), "-D", ...flags], {
      ...{ env: ownEnv, stdin: "ignore", stdout: "ignore", stderr: "ignore" },
    });
  const command = async (args: string[], env: Record<string, string> = {}): Promise<string> => {
    const { exitCode, stdout, stderr } = await ended(args, { ...ownEnv, ...env });
    if (exitCode !== 0) throw new Error(`${args.join(" ")}: ${stderr}`);
    return stdout.trim();
  };
  const daemons = [
    daemon("slurmctld", "-c"),
    daemon("slurmd", "-d", join(prefix, "bin/slurmstepd")),
  ];
  const end = async () => {
    for (const child of daemons) child.kill("SIGTERM");
    await Promise.all(daemons.map((child) => child.exited));
    dir[Symbol.dispose]();
  };
  const node = () => command(["scontrol", "show", "node", "--oneliner"]).catch(() => "");
  await waitFor(async () => / State=IDLE /.test(await node()), "Slurm's node").catch(
    async (error) => {
      const logs = ["slurmctld", "slurmd"].map((name) => lastLines(dir.file(`${name}.log`)));
      await end();
      throw new Error(logs.join("\n"), { cause: error });
    },
  );
  return {
    /** Submits a batch job, and returns its id. */
    async sbatch({ script, args, env }: BatchJob): Promise<string> {
      const output = ["--parsable", "--output", dir.file("%j.out")];
      return await command(["sbatch", ...output, script, ...args], env);
    },
    scancel: (...args: string[]) => command(["scancel", ...args]),
    /** What `scontrol show job` says, by name: JobState, Restarts, ExitCode, … */
    async job(id: string): Promise<Record<string, string>> {
      const line = await command(["scontrol", "show", "job", "--oneliner", id]);
      return Object.fromEntries([...line.matchAll(/(\w+)=(\S*)/g)].map(([, k, v]) => [k, v]));
    },
    /** What it has written, of all its starts. */
    output: (id: string) => readFileSync(dir.file(`${id}.out`), "utf8"),
    async [Symbol.asyncDispose]() {
      try {
        await command(["scancel", "--me"]);
        const queue = () => command(["squeue", "--noheader"]);
        await waitFor(async () => (await queue()) === "", "the end of all jobs");
      } finally {
        await end();
      }
    },
  };
}

async function ended(args: string[], env?: Record<string, string>) {
  const child = Bun.spawn(args, {
    ...{ ...(env ? { env } : {}), cwd: "/", stdin: "ignore", stdout: "pipe", stderr: "pipe" },
  });
  const [stdout, stderr, exitCode] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { stdout, stderr, exitCode };
}

/** The folder with Slurm's programs, fetched if this user has none. */
async function setUp(): Promise<string> {
  const { exitCode, stdout, stderr } = await ended([SETUP]);
  if (exitCode !== 0) throw new Error(stderr);
  return stdout.trim();
}

/** Slurm can't be told to choose; all are taken before the first is given up, so that they differ. */
async function freePorts(): Promise<[number, number]> {
  const servers = [createServer(), createServer()];
  const ports = await Promise.all(
    servers.map((server) => {
      const { promise, resolve } = Promise.withResolvers<number>();
      server.listen(0, "127.0.0.1", () => resolve((server.address() as { port: number }).port));
      return promise;
    }),
  );
  for (const server of servers) server.close();
  return ports as [number, number];
}

function configuration(
  prefix: string,
  dir: string,
  { ctldPort, nodePort }: { ctldPort: number; nodePort: number },
): string {
  const [host] = hostname().split(".");
  const uid = process.getuid?.();
  return `
ClusterName=test
SlurmctldHost=${host}(127.0.0.1)
SlurmctldPort=${ctldPort}
SlurmdPort=${nodePort}
# On loopback only.
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmUser=${uid}
SlurmdUser=${uid}
AuthType=auth/none
# How long a requeued job waits, here not two minutes. 6 s is the least.
AuthInfo=cred_expire=6
CredType=cred/none
PluginDir=${prefix}/plugins
StateSaveLocation=${dir}/state
SlurmdSpoolDir=${dir}/spool
SlurmctldPidFile=${dir}/slurmctld.pid
SlurmdPidFile=${dir}/slurmd.pid
SlurmctldLogFile=${dir}/slurmctld.log
SlurmdLogFile=${dir}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
# How often, in seconds, it looks for jobs that may start.
SchedulerParameters=sched_interval=1,bf_interval=1
# Between SIGTERM and SIGKILL, here not 30 s.
KillWait=2
# More jobs at once than the machine has cores.
SlurmdParameters=config_overrides
NodeName=${host} NodeAddr=127.0.0.1 CPUs=8 State=UNKNOWN
PartitionName=all Nodes=${host} Default=YES MaxTime=INFINITE State=UP
`;
}

function lastLines(file: string): string {
  try {
    return readFileSync(file, "utf8").slice(-2000);
  } catch {
    return "no log";
  }
}
