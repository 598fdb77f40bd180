import type { DriverName } from "../../src/sandbox/sandbox.ts";
import { DAEMONISE, setup } from "./setup.ts";

/** A service that is killed while it has a sandbox: prints the handle and waits for its end. */
const bundle = await setup(process.argv[2] as DriverName);
const sandbox = await bundle.open();
const options = { timeoutMs: 10_000, maxOutputBytes: 1000 };
await sandbox.exec(DAEMONISE, options);
console.log(JSON.stringify({ handle: sandbox.handle, dataDir: bundle.dataDir }));
await Bun.sleep(1_000_000);
