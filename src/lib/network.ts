import { lookup } from "node:dns/promises";
import { BlockList, isIP, type LookupFunction } from "node:net";
import { ServiceError } from "../errors.ts";

export const NETWORKS = ["loopback", "private", "public"] as const;
export type Network = (typeof NETWORKS)[number];

const RANGES: Record<"loopback" | "private" | "never" | "global6", string[]> = {
  loopback: ["127.0.0.0/8", "::1/128"],
  private: ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"],
  // Nobody's service lives there, and a cloud's metadata does (169.254.169.254).
  never: [
    "0.0.0.0/8",
    "169.254.0.0/16",
    "192.0.0.0/24",
    "192.88.99.0/24",
    "198.18.0.0/15",
    "224.0.0.0/3",
    // Teredo and 6to4 carry an IPv4 address, as what lies outside of 2000::/3 may.
    "2001::/32",
    "2002::/16",
    // Metadata of clouds beside the usual address: Alibaba's, Amazon's and Google's.
    "100.100.100.200/32",
    "fd00:ec2::254/128",
    "fd20:ce::254/128",
  ],
  // All that is public in IPv6. The rest is link-local, translated (64:ff9b::/96), or IPv4 in disguise (::a.b.c.d).
  global6: ["2000::/3"],
};

const LISTS = Object.fromEntries(
  Object.entries(RANGES).map(([name, ranges]) => [name, blockList(ranges)]),
) as Record<keyof typeof RANGES, BlockList>;

function blockList(ranges: string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = "", bits = ""] = range.split("/");
    list.addSubnet(address, Number(bits), isIP(address) === 6 ? "ipv6" : "ipv4");
  }
  return list;
}

/** Where an IP address is; null for one that nothing of ours may be sent to. */
export function networkOf(address: string): Network | null {
  const version = isIP(address);
  if (version === 0) return null;
  // Canonical, so that every way to write a mapped address is one. A zone belongs to link-local addresses alone.
  const plain = version === 6 ? canonical6(address) : address;
  if (plain === null) return null;
  const family = isIP(plain) === 6 ? "ipv6" : "ipv4";
  if (LISTS.never.check(plain, family)) return null;
  if (LISTS.loopback.check(plain, family)) return "loopback";
  if (LISTS.private.check(plain, family)) return "private";
  return family === "ipv4" || LISTS.global6.check(plain, family) ? "public" : null;
}

/** An IPv6 address in its shortest form, or the IPv4 address that it maps; null for one with a zone. */
function canonical6(address: string): string | null {
  if (address.includes("%")) return null;
  const short = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [, high, low] = /^::ffff:([\da-f]{1,4}):([\da-f]{1,4})$/.exec(short) ?? [];
  if (high === undefined || low === undefined) return short;
  const [a, b] = [Number.parseInt(high, 16), Number.parseInt(low, 16)];
  return [a >> 8, a & 255, b >> 8, b & 255].join(".");
}

/**
 * The address to connect to for a URL. Who then connects to it, and not to the name again, can't be led
 * elsewhere by a second answer of the name's server.
 *
 * @throws ServiceError `address_forbidden` where any of the host's addresses is in no allowed network
 */
export async function resolveAllowed(url: URL, allowed: readonly Network[]): Promise<string> {
  const [first] = await addressesOf(url.hostname.replace(/^\[|\]$/g, ""), allowed);
  if (!first) throw new ServiceError("address_forbidden", `${url.host} has no address`);
  return first.address;
}

/**
 * For `lookup` of a connection: what the name is called by at that moment has to be allowed, whatever it was before.
 * A host that is an address already is not looked up, so it has to be checked by itself, once.
 */
export function lookupWithin(allowed: readonly Network[]): LookupFunction {
  return (host, _options, done) => {
    addressesOf(host, allowed).then(
      (found) => done(null, found),
      (error: Error) => done(error, []),
    );
  };
}

async function addressesOf(host: string, allowed: readonly Network[]) {
  const found = isIP(host)
    ? [{ address: host, family: isIP(host) }]
    : await lookup(host, { all: true });
  for (const { address } of found) {
    const network = networkOf(address);
    if (network === null || !allowed.includes(network)) {
      const message = `${host} is at ${address}, which is in no allowed network`;
      const mend = `only ${allowed.join(" and ")} addresses may be called; the operator can change it`;
      throw new ServiceError("address_forbidden", message, { mend });
    }
  }
  return found;
}
