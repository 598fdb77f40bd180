import type { IncomingMessage } from "node:http";
import { z } from "zod";
import { ServiceError } from "../../../errors.ts";
import { loginFor } from "./credentials.ts";
import { heldGet, requireOrigin } from "./held-get.ts";
import type { ImageName } from "./image-name.ts";
import type { Registry } from "./registries.ts";

const MAX_TEXT_BYTES = 4 * 1024 * 1024;
const token = z.string().regex(/^[\x21-\x7e]{1,65536}$/);
const tokenSchema = z.object({ token: token.optional(), access_token: token.optional() });

/** One repository of a registry, by the distribution API. Every connection is held to the registry's addresses. */
export class RegistryClient {
  readonly #name: ImageName;
  readonly #registry: Registry;
  readonly #signal: AbortSignal;
  #authorization: string | null = null;

  constructor(name: ImageName, registry: Registry, signal: AbortSignal) {
    this.#name = name;
    this.#registry = registry;
    this.#signal = signal;
  }

  /** @throws ServiceError `address_forbidden`, `image_unreachable`, `image_not_found` */
  async manifest(reference: string, types: readonly string[]): Promise<Buffer> {
    const response = await this.#get(`manifests/${reference}`, { accept: types.join(", ") });
    return await readText(response);
  }

  /** What it gives is to be compared with the digest. @throws ServiceError as `manifest` */
  blob(digest: string): Promise<IncomingMessage> {
    return this.#get(`blobs/${digest}`, {});
  }

  async #get(path: string, headers: Record<string, string>): Promise<IncomingMessage> {
    const url = new URL(`${this.#registry.api}/v2/${this.#name.repository}/${path}`);
    const ask = () => this.#held(url, headers, this.#authorization);
    let response = await ask();
    if (response.statusCode === 401 && this.#authorization === null) {
      response.destroy();
      this.#authorization = await this.#answer(`${response.headers["www-authenticate"] ?? ""}`);
      response = await ask();
    }
    if (response.statusCode === 200) return response;
    response.destroy();
    throw refused(this.#name, response.statusCode ?? 0);
  }

  /** A registry says where its tokens are had; the login goes there only where that is one of its addresses. */
  async #answer(challenge: string): Promise<string> {
    const login = loginFor(this.#registry.host, process.env);
    if (/^Basic\b/i.test(challenge) && login !== null) return login;
    const field = (name: string) => new RegExp(`\\b${name}="([^"]*)"`).exec(challenge)?.[1];
    const realm = field("realm");
    if (!/^Bearer\b/i.test(challenge) || !realm || !URL.canParse(realm)) {
      throw refused(this.#name, 401);
    }
    const url = new URL(realm);
    requireOrigin(url, this.#registry);
    const service = field("service");
    if (service !== undefined) url.searchParams.set("service", service);
    url.searchParams.set("scope", `repository:${this.#name.repository}:pull`);
    const response = await this.#held(url, {}, login);
    if (response.statusCode !== 200) {
      response.destroy();
      throw refused(this.#name, response.statusCode ?? 0);
    }
    const parsed = tokenSchema.safeParse(parseJson(await readText(response)));
    const given = parsed.data?.token ?? parsed.data?.access_token;
    if (given === undefined) throw refused(this.#name, 401);
    return `Bearer ${given}`;
  }

  #held(url: URL, headers: Record<string, string>, authorization: string | null) {
    const own = { ...headers, "accept-encoding": "identity" };
    const [registry, signal] = [this.#registry, this.#signal];
    return heldGet(url, { registry, headers: own, authorization, signal });
  }
}

async function readText(response: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of response) {
      bytes += chunk.length;
      if (bytes > MAX_TEXT_BYTES) throw new Error("its answer is too long");
      chunks.push(chunk);
    }
  } catch (error) {
    const message = `the registry's answer can't be read: ${(error as Error).message}`;
    throw new ServiceError("image_unreachable", message, { cause: error });
  }
  return Buffer.concat(chunks);
}

export function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch {
    return null;
  }
}

function refused({ host, repository, reference }: ImageName, status: number): ServiceError {
  const message = `${host} answers ${status} for ${repository} ${reference}`;
  if (status >= 500 || status === 429 || status === 0) {
    return new ServiceError("image_unreachable", message);
  }
  const mend = "correct the reference, or log in with `apptainer registry login`";
  return new ServiceError("image_not_found", message, { mend });
}
