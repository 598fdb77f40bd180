import { createHash, timingSafeEqual } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { ServiceError } from "../errors.ts";

const MIN_TOKEN_LENGTH = 16;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
/** How long a changed file may go unnoticed. Units: milliseconds. */
const LOOK_AGAIN_MS = 1000;

type Token = { name: string; digest: Buffer };

/**
 * The tokens that open the TCP port: one a line, `TOKEN`, `NAME:TOKEN` or `operator:TOKEN`. Tokens of one name are one
 * client, which sees its own rollouts alone; one without a name is a client by itself. The operator's see and change
 * everything. The file is looked at again when it changes, so tokens are rotated without a restart: add the new one
 * under the same name, move clients over, remove the old one.
 */
export class TokenFile {
  readonly #path: string;
  #tokens: Token[];
  #stamp: string;
  readonly #lookAgainMs: number;
  #lookedMs = performance.now();

  /** @throws ServiceError `invalid_field` where the file is missing, empty, or others can read it */
  constructor(path: string, lookAgainMs = LOOK_AGAIN_MS) {
    this.#path = path;
    this.#lookAgainMs = lookAgainMs;
    this.#stamp = stampOf(path);
    this.#tokens = readTokens(path);
  }

  /** The name of the token in an `Authorization` header; null where it has none of ours. */
  nameOf(authorization: string | null): string | null {
    this.#refresh();
    const given = /^Bearer (\S+)$/.exec(authorization ?? "")?.[1];
    if (given === undefined) return null;
    const digest = digestOf(given);
    let found: string | null = null;
    // Every one is compared, and digests have one length, so that the time says nothing of the tokens.
    for (const token of this.#tokens) {
      if (timingSafeEqual(token.digest, digest)) found = token.name;
    }
    return found;
  }

  /** A file that can't be read or makes no sense leaves the tokens as they were: half a write locks nobody out. */
  #refresh(): void {
    const nowMs = performance.now();
    if (nowMs - this.#lookedMs < this.#lookAgainMs) return;
    this.#lookedMs = nowMs;
    try {
      const stamp = stampOf(this.#path);
      if (stamp === this.#stamp) return;
      this.#tokens = readTokens(this.#path);
      this.#stamp = stamp;
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
    }
  }
}

function stampOf(path: string): string {
  try {
    const { ino, size, mtimeMs } = statSync(path);
    return `${ino} ${size} ${mtimeMs}`;
  } catch (cause) {
    throw refusal(
      `there is no file ${path}`,
      `umask 077; echo operator:$(openssl rand -hex 32) > ${path}`,
      cause,
    );
  }
}

function readTokens(path: string): Token[] {
  const lines = readPrivate(path).split("\n");
  const tokens = lines.flatMap((line, index) => {
    const text = line.trim();
    if (text === "" || text.startsWith("#")) return [];
    const colon = text.indexOf(":");
    const token = text.slice(colon + 1);
    const digest = digestOf(token);
    // By itself and not by its line, or a line that goes would hand its rollouts on.
    const name =
      colon === -1 ? `token-${digest.toString("hex").slice(0, 12)}` : text.slice(0, colon);
    const where = `line ${index + 1} of ${path}`;
    if (token.length < MIN_TOKEN_LENGTH || /\s/.test(token)) {
      const mend = `use at least ${MIN_TOKEN_LENGTH} characters: openssl rand -hex 32`;
      throw refusal(`${where} is no token`, mend);
    }
    if (!NAME.test(name)) {
      throw refusal(`${where} has no name before its colon`, "use 1-64 of A-Z a-z 0-9 . _ -");
    }
    return [{ name, digest }];
  });
  const owners = new Map<string, string>();
  for (const { name, digest } of tokens) {
    const key = digest.toString("hex");
    const other = owners.get(key) ?? name;
    if (other !== name)
      throw refusal(`${path} has one token for ${other} and ${name}`, "give each its own");
    owners.set(key, name);
  }
  if (tokens.length > 0) return tokens;
  throw refusal(`${path} has no token`, `echo operator:$(openssl rand -hex 32) >> ${path}`);
}

function readPrivate(path: string): string {
  try {
    if ((statSync(path).mode & 0o077) === 0) return readFileSync(path, "utf8");
  } catch (cause) {
    const mend = "give the path of a file that this user can read";
    throw refusal(`${path} can't be read: ${(cause as Error).message}`, mend, cause);
  }
  throw refusal(`others can read the tokens in ${path}`, `chmod 600 ${path}`);
}

function digestOf(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}

function refusal(message: string, mend: string, cause?: unknown): ServiceError {
  return new ServiceError("invalid_field", message, { field: "token_file", mend, cause });
}
