/** What every command in a sandbox starts with: nothing of the host's own environment. */
export function sandboxEnvironment(paths: SandboxPaths): Record<string, string> {
  return {
    PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    HOME: paths.home,
    SHELL: "/bin/bash",
    LANG: "C.UTF-8",
    TERM: "dumb",
    // A pager would wait for a key that never comes, and git for a password.
    PAGER: "cat",
    GIT_PAGER: "cat",
    MANPAGER: "cat",
    GIT_TERMINAL_PROMPT: "0",
    MPLBACKEND: "Agg",
  };
}

/** Where commands find what the service gives them. */
export type SandboxPaths = {
  /** Read-only: the supervisor, the drivers, the text of the shell's commands. */
  assets: string;
  /** For sockets; the sandbox may write here. */
  io: string;
  home: string;
};

/** Neutral names: a payload sees them in its mounts. */
export const INSIDE: SandboxPaths = { assets: "/run/rollout", io: "/run/io", home: "/tmp/home" };
