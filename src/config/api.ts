import { z } from "zod";
import { bytes, count, flag, networks, path, setting, whole } from "./setting.ts";

/** Listening, who may, and how much at once. */
export const API_SETTINGS = {
  host: setting(z.string().min(1, "must not be empty"), "127.0.0.1", "address to listen on"),
  port: setting(whole(0, 65_535), 8006, "TCP port; 0 takes a free one"),
  socket: setting(path, undefined, "path of the Unix socket; by default rolloutd.sock in data_dir"),
  token_file: setting(
    path,
    undefined,
    "file of bearer tokens for the TCP port, 0600, one a line (TOKEN or NAME:TOKEN); read again when it changes",
  ),
  allow_anonymous: setting(
    flag,
    false,
    "serve an address that others reach without tokens: for clients that can't send one, in a network of one's own",
  ),
  tls_cert: setting(path, undefined, "certificate (PEM) for TLS on the TCP port, with tls_key"),
  tls_key: setting(path, undefined, "private key (PEM) of tls_cert"),
  max_waiting: setting(
    count,
    20_000,
    "requests that wait for a rollout; more are refused with 429",
  ),
  max_requests: setting(count, 30_000, "requests that are open at once; more are refused with 429"),
  max_streams: setting(count, 256, "streams of events; more are refused with 429"),
  max_body_bytes: setting(bytes, 64 * 1024 * 1024, "size of a request's body"),
  callback_secret_file: setting(
    path,
    undefined,
    "file of the secret that signs callbacks, 0600 (or ROLLOUTD_CALLBACK_SECRET); none without it",
  ),
  callback_networks: setting(
    networks,
    "loopback,private",
    "where callbacks may go: any of loopback, private, public",
  ),
  log_level: setting(z.enum(["info", "warn", "error", "silent"]), "info", "what is logged"),
} as const;
