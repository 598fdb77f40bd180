import { readFileSync } from "node:fs";
import type { Config } from "../config/settings.ts";
import { ServiceError } from "../errors.ts";
import { TokenFile } from "../server/tokens.ts";

/** Who may use the TCP port, and how. @throws ServiceError `invalid_field` */
export function tcpAddress(config: Config) {
  const { host, port, token_file, tls_cert, tls_key, allow_anonymous: anonymous } = config;
  if ((tls_cert === undefined) !== (tls_key === undefined)) {
    const mend = "set both, or neither";
    const message = "tls_cert and tls_key belong together";
    throw new ServiceError("invalid_field", message, { field: "tls_cert", mend });
  }
  const tokens = token_file === undefined ? null : new TokenFile(token_file);
  const tls =
    tls_cert && tls_key
      ? { cert: readPem("tls_cert", tls_cert), key: readPem("tls_key", tls_key) }
      : null;
  return { host, port, tokens, tls, anonymous };
}

/** @throws ServiceError `invalid_field` */
export function readPem(field: string, path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    const message = `${field}: ${path} can't be read: ${(cause as Error).message}`;
    throw new ServiceError("invalid_field", message, { field, cause });
  }
}
