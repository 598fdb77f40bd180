import { parseCalypso, parseJest, parseJestFiles, parseJestJson, parseVitest } from "./jest-log.ts";
import { parseKarma, parseKarmaFailures, parseKarmaRuns, parseOpenLayers } from "./karma-log.ts";
import {
  parseJasmineFailures,
  parseMochaFailures,
  parseMochaJson,
  parseMochaRuns,
  parseMochaSpec,
  parseNestedFailures,
} from "./mocha-log.ts";
import { parseCargo, parseGo, parseQuarto, parseTap } from "./other-logs.ts";
import {
  parseMatplotlib,
  parsePytest,
  parsePytestEitherEnd,
  parsePytestOptions,
  parsePytestProgress,
  parsePytestV2,
  parseR2e,
  parseSeaborn,
} from "./pytest-log.ts";
import type { TestLine } from "./status.ts";
import { parseSympy, parseUnittest } from "./unittest-log.ts";

export type LogFormat = {
  parse(log: string): TestLine[];
  /** Whether it names only what failed, so that a test without a status has passed, if the suite ran. */
  failuresOnly?: boolean;
};

/** The formats by name. A format is what a runner prints, not whose repository it is. */
export const LOG_FORMATS = {
  pytest: { parse: parsePytest },
  "pytest-options": { parse: parsePytestOptions },
  "pytest-v2": { parse: parsePytestV2 },
  "pytest-either-end": { parse: parsePytestEitherEnd },
  "pytest-progress": { parse: parsePytestProgress },
  matplotlib: { parse: parseMatplotlib },
  seaborn: { parse: parseSeaborn },
  r2e: { parse: parseR2e },
  unittest: { parse: parseUnittest },
  sympy: { parse: parseSympy },
  jest: { parse: parseJest },
  "jest-json": { parse: parseJestJson },
  "jest-files": { parse: parseJestFiles },
  calypso: { parse: parseCalypso },
  vitest: { parse: parseVitest },
  "mocha-spec": { parse: parseMochaSpec },
  "mocha-runs": { parse: parseMochaRuns },
  "mocha-json": { parse: parseMochaJson },
  "mocha-failures": { parse: parseMochaFailures, failuresOnly: true },
  "nested-failures": { parse: parseNestedFailures, failuresOnly: true },
  "jasmine-failures": { parse: parseJasmineFailures, failuresOnly: true },
  karma: { parse: parseKarma },
  "karma-runs": { parse: parseKarmaRuns },
  "karma-failures": { parse: parseKarmaFailures, failuresOnly: true },
  openlayers: { parse: parseOpenLayers, failuresOnly: true },
  tap: { parse: parseTap },
  quarto: { parse: parseQuarto },
  go: { parse: parseGo },
  cargo: { parse: parseCargo },
} as const satisfies Record<string, LogFormat>;

export type LogFormatName = keyof typeof LOG_FORMATS;

/** The harness's own names for its parsers, as rows of its fifth version carry them in `log_parser`. */
const HARNESS_NAMES: Record<string, LogFormatName> = {
  parse_log_pytest: "pytest",
  parse_log_pytest_options: "pytest-options",
  parse_log_pytest_v2: "pytest-v2",
  parse_log_matplotlib: "matplotlib",
  parse_log_seaborn: "seaborn",
  parse_log_django: "unittest",
  parse_log_sympy: "sympy",
  parse_log_astroid: "pytest",
  parse_log_flask: "pytest",
  parse_log_marshmallow: "pytest",
  parse_log_pvlib: "pytest",
  parse_log_pyvista: "pytest",
  parse_log_sqlfluff: "pytest",
  parse_log_xarray: "pytest",
  parse_log_pydicom: "pytest-options",
  parse_log_requests: "pytest-options",
  parse_log_pylint: "pytest-options",
  parse_log_astropy: "pytest-v2",
  parse_log_scikit: "pytest-v2",
  parse_log_sphinx: "pytest-v2",
  parse_log_calypso: "calypso",
  parse_log_chart_js: "karma-failures",
  parse_log_bpmn_js: "karma-failures",
  parse_log_openlayers: "openlayers",
  parse_log_marked: "jasmine-failures",
  parse_log_p5js: "nested-failures",
  parse_log_eslint: "mocha-failures",
  parse_log_highlightjs: "mocha-spec",
  parse_log_lighthouse: "mocha-runs",
  parse_log_prismjs: "mocha-json",
  parse_log_react_pdf: "jest-files",
  parse_log_carbon: "jest-files",
  parse_log_grommet: "jest-files",
  parse_log_jest: "jest",
  parse_log_jest_json: "jest-json",
  parse_log_vitest: "vitest",
  parse_log_karma: "karma",
  parse_log_next: "karma-runs",
  parse_log_tap: "tap",
  parse_log_quarto_cli: "quarto",
  parse_log_gotest: "go",
  parse_log_cargo: "cargo",
};

/** A format by its own name or the harness's; null where it is neither. */
export function logFormatNamed(name: string): LogFormatName | null {
  if (Object.hasOwn(LOG_FORMATS, name)) return name as LogFormatName;
  return Object.hasOwn(HARNESS_NAMES, name) ? (HARNESS_NAMES[name] ?? null) : null;
}
