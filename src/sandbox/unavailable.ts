import { ServiceError } from "../errors.ts";

/** A program's words, and what to do about them. */
export type Mends = [RegExp, string][];

/** What our own programs say when the node does not let them do their work. */
const OURS: Mends = [
  [
    /stage: (a user namespace|\/proc\/self\/\w+) failed/,
    "Raise user.max_user_namespaces; on Ubuntu also set kernel.apparmor_restrict_unprivileged_userns to 0.",
  ],
  [
    /stage: an overlay failed with errno (?!107)/,
    "Use Linux 5.11 or newer, and image_cache and data_dir on a local disk (ext4, xfs, btrfs).",
  ],
  [
    /stage: (\/dev\/fuse|the image's FUSE mount) failed/,
    "Let the user open /dev/fuse (chmod 666, by an administrator), or leave image_mount_bytes out: then images are unpacked.",
  ],
  [
    /stage: to run the starter failed with errno (2|8|13|20|40)\b/,
    "Install the program of --apptainer or --bwrap anew: it is not there any more, or can't be run.",
  ],
  [
    /(seccomp filters|no_new_privs) (are|is) not available/,
    "Run the service on a kernel with seccomp filters, and not in a container that forbids them.",
  ],
  [
    /can't be (dropped|sealed|bounded)/,
    "Run the service as an ordinary user: only a service of root's needs this.",
  ],
];

/** As C libraries say it: what is used up now may be there a moment later. */
const SHORTAGE = /temporarily unavailable|Too many open files|Cannot allocate memory/i;

/** A start that failed for what the node lacks will fail again: says so, and what to do. */
export function asUnavailable(error: unknown, mends: Mends): unknown {
  if (!(error instanceof ServiceError) || error.code !== "sandbox_start_failed") return error;
  if (SHORTAGE.test(error.message)) return error;
  const mend = [...OURS, ...mends].find(([words]) => words.test(error.message))?.[1];
  if (mend === undefined) return error;
  return new ServiceError("sandbox_unavailable", error.message, { mend, cause: error });
}
