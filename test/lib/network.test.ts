import { describe, expect, test } from "bun:test";
import { networkOf, resolveAllowed } from "../../src/lib/network.ts";
import { failureOf } from "../support/failure.ts";

describe("an address", () => {
  test.each([
    ["127.0.0.1", "loopback"],
    ["127.8.9.1", "loopback"],
    ["::1", "loopback"],
    ["::ffff:127.0.0.1", "loopback"],
    ["10.1.2.3", "private"],
    ["172.31.255.255", "private"],
    ["192.168.0.1", "private"],
    ["fd00::1", "private"],
    ["172.32.0.1", "public"],
    ["8.8.8.8", "public"],
    ["2606:4700::1111", "public"],
    ["169.254.169.254", null],
    ["::ffff:169.254.169.254", null],
    ["::ffff:a9fe:a9fe", null],
    ["0.0.0.0", null],
    ["::", null],
    ["224.0.0.1", null],
    ["255.255.255.255", null],
    ["fe80::1", null],
    ["64:ff9b::7f00:1", null],
    ["2002:7f00:1::", null],
    ["64:ff9b:1::a9fe:a9fe", null],
    ["100.100.100.200", null],
    ["fd00:ec2::254", null],
    ["fd20:ce::254", null],
    ["localhost", null],
  ] as const)("%s is %p", (address, network) => {
    expect(networkOf(address)).toBe(network);
  });
});

describe("a URL's host", () => {
  test("is resolved to an address of an allowed network", async () => {
    expect(await resolveAllowed(new URL("http://[::1]:9/x"), ["loopback"])).toBe("::1");
    const address = await resolveAllowed(new URL("http://localhost/"), ["loopback"]);
    expect(networkOf(address)).toBe("loopback");
  });

  test("is refused by its address, however the address is written", async () => {
    for (const host of ["localhost", "127.1", "0x7f000001", "2130706433", "[::ffff:7f00:1]"]) {
      const url = new URL(`http://${host}/`);
      const { code } = await failureOf(() => resolveAllowed(url, ["public"]));
      expect([host, code]).toEqual([host, "address_forbidden"]);
    }
  });
});
