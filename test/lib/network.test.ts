import { describe, expect, test } from "bun:test";
import { networkOf, resolveAllowed } from "../../src/lib/network.ts";
import { failureOf } from "../support/failure.ts";
import { randomFrom } from "../support/random.ts";

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
    ["::8.8.8.8", null],
    ["::ffff:0:8.8.8.8", null],
    ["::ffff:8.8.8.8", "public"],
    ["0:0:0:0:0:ffff:0a00:0001", "private"],
    ["2001:0:808:808::1", null],
    ["100::1", null],
    ["5f00::1", null],
    ["fec0::1", null],
    ["fe80::1%eth0", null],
    ["::1%lo", null],
    ["198.18.0.1", null],
    ["240.0.0.1", null],
    ["192.88.99.1", null],
    ["100.64.0.1", "private"],
    ["2130706433", null],
    ["0x7f.1", null],
    ["0177.0.0.1", null],
  ] as const)("%s is %p", (address, network) => {
    expect(networkOf(address)).toBe(network);
  });
});

test("an IPv4 address in the clothes of an IPv6 address is what it is by itself, or nothing", () => {
  const draw = randomFrom(7);
  for (let round = 0; round < 2000; round++) {
    const octets = Array.from({ length: 4 }, () => Math.floor(draw() * 256));
    const plain = octets.join(".");
    const [a = 0, b = 0, c = 0, d = 0] = octets;
    const hex = [(a << 8) | b, (c << 8) | d].map((each) => each.toString(16)).join(":");
    for (const tail of [plain, hex]) {
      const mapped = `::ffff:${tail}`;
      expect([mapped, networkOf(mapped)]).toEqual([mapped, networkOf(plain)]);
      for (const head of ["::", "::ffff:0:", "64:ff9b::", "64:ff9b:1::", "fe80::", "fec0::"]) {
        // ::1 and :: are addresses of their own.
        if (a + b + c === 0) continue;
        expect([head + tail, networkOf(head + tail)]).toEqual([head + tail, null]);
      }
    }
    const [high = "", low = ""] = hex.split(":");
    for (const one of [`2002:${high}:${low}::1`, `2001:0:${high}:${low}::1`])
      expect([one, networkOf(one)]).toEqual([one, null]);
  }
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
