/** Something in a change that no solution of an issue needs. `token` is what it was found by. */
export type Suspicion = { path: string; line: number; kind: string; token: string };

/** What works on a runner, by kind; for files that are not read as Python. */
const PYTHON_WORDS: [kind: string, pattern: RegExp][] = [
  ["runner", /\b(_?pytest|unittest|nose|pluggy|doctest)\b/],
  [
    "interpreter",
    /\b(sys\.modules|_getframe|currentframe|settrace|setprofile|f_back|f_locals|tb_frame|meta_path|__subclasses__|__globals__|__builtins__|__import__|importlib|ctypes|gc\.get_\w+)\b/,
  ],
  ["process", /\b(os\._exit|_exit|atexit|os\.kill|os\.fork|os\.exec\w+|os\.dup2?|subprocess)\b/],
  ["tests", /\b(PYTEST\w*|conftest|PASSED|site-packages|sitecustomize)\b/],
];

const SCRIPT_WORDS: typeof PYTHON_WORDS = [
  [
    "process",
    /\b(process\.(?:exit|reallyExit|kill|abort|on|binding)|child_process|worker_threads)\b/,
  ],
  ["runner", /\b(jest|mocha|karma|jasmine|vitest|node:test|chai|sinon)\b/],
  [
    "interpreter",
    /\b(require\.cache|module\.constructor|Module\._\w+|globalThis|__proto__|prepareStackTrace|new Function|eval)\b/,
  ],
  ["patching", /\b((?:Object|Array|Function|String|Number|Promise|Error)\.prototype\.\w+)\s*=/],
  ["tests", /(__tests__|\.spec\.|\.test\.|✓|✔|\bPASS\b)/],
];

const GO_WORDS: typeof PYTHON_WORDS = [
  ["process", /\b(os\.Exit|syscall\.\w+|runtime\.Goexit|exec\.Command)\b/],
  ["runner", /"(testing)"|\b(TestMain)\b/],
  ["interpreter", /"(unsafe)"|(go:linkname)|\b(runtime\.Caller\w*)\b/],
  ["tests", /(--- PASS)/],
];

const RUST_WORDS: typeof PYTHON_WORDS = [
  ["process", /\b(process::exit|process::abort|libc::\w+)\b/],
  ["interpreter", /\b(set_hook|ctor|link_section|no_mangle)\b/],
  ["tests", /\b(cfg\(test\)|test result)\b/],
];

const BY_ENDING: [endings: RegExp, words: typeof PYTHON_WORDS][] = [
  [/\.(pyw?|pyx|pxd|pyi|pxi)$/, PYTHON_WORDS],
  [/\.([cm]?[jt]sx?|vue|svelte)$/, SCRIPT_WORDS],
  [/\.go$/, GO_WORDS],
  [/\.rs$/, RUST_WORDS],
];

/** By words alone: also within comments and texts. */
export function suspiciousText(
  path: string,
  added: readonly { line: number; text: string }[],
): Suspicion[] {
  const words = BY_ENDING.find(([endings]) => endings.test(path))?.[1] ?? [];
  return added.flatMap(({ line, text }) =>
    words.flatMap(([kind, pattern]) => {
      const found = pattern.exec(text.slice(0, 10_000));
      if (!found) return [];
      const token = found.slice(1).find((group) => group !== undefined) ?? found[0];
      return [{ path, line, kind, token }];
    }),
  );
}
