import { describe, expect, test } from "bun:test";
import { parseFlags, UsageError } from "../../src/cli/flags.ts";
import { configFrom, settingFlags, settingsHelp } from "../../src/cli/settings.ts";
import { flagOf, SETTINGS, variableOf } from "../../src/config/settings.ts";
import { tempDir } from "../support/temp-dir.ts";

function configOf(...args: string[]) {
  return configFrom(parseFlags(args, settingFlags()).values);
}

describe("the settings of a command line", () => {
  test("come from its flags, and from the TOML file that --config names", async () => {
    using dir = tempDir();
    await Bun.write(dir.file("c.toml"), 'port = 1\nrun_slots = 7\ndata_dir = "/x"\n');
    const config = configOf("--config", dir.file("c.toml"), "--port", "2", "--allow-host-driver");
    const { port, run_slots, data_dir, allow_host_driver } = config;
    expect({ port, run_slots, data_dir, allow_host_driver }).toEqual({
      port: 2,
      run_slots: 7,
      data_dir: "/x",
      allow_host_driver: true,
    });
  });

  test("that are wrong are a matter of usage, wherever they were set", async () => {
    using dir = tempDir();
    await Bun.write(dir.file("unknown.toml"), "prot = 1\n");
    await Bun.write(dir.file("broken.toml"), "port = = 1\n");
    const file = (name: string) => () => configOf("--config", dir.file(name));
    expect(() => configOf("--port", "http")).toThrow(UsageError);
    expect(file("unknown.toml")).toThrow(UsageError);
    expect(file("unknown.toml")).toThrow("unknown key: prot");
    expect(file("broken.toml")).toThrow(UsageError);
    expect(file("broken.toml")).toThrow(`${dir.file("broken.toml")} can't be read: `);
    expect(file("missing.toml")).toThrow(`${dir.file("missing.toml")} can't be read: ENOENT`);
  });
});

test("the help has a line for every setting, with its default, and tells of the other ways to set one", () => {
  const help = settingsHelp();
  const missing = Object.entries(SETTINGS).filter(([name, { doc }]) => {
    const line = help.split("\n").find((text) => text.startsWith(`  ${flagOf(name)} `));
    return !line?.includes(doc);
  });
  expect(missing).toEqual([]);
  expect(help).toContain(`TCP port; 0 takes a free one [${SETTINGS.port.fallback}]`);
  expect(help).toContain(variableOf("data_dir"));
});
