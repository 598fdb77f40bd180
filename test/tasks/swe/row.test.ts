import { describe, expect, test } from "bun:test";
import { imageOf } from "../../../src/tasks/swe/images.ts";
import { parseSweRow } from "../../../src/tasks/swe/row.ts";
import { failureOf } from "../../support/failure.ts";

const PATCH = `diff --git a/a.py b/a.py
--- a/a.py
+++ b/a.py
@@ -1 +1 @@
-x
+y
`;
const TESTS = [
  PATCH.replaceAll("a.py", "tests/x/test_a.py"),
  PATCH.replaceAll("a.py", "tests/data.json"),
  "diff --git a/tests/gone.py b/tests/gone.py\ndeleted file mode 100644\n--- a/tests/gone.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n",
].join("");

const ROW = {
  instance_id: "django__django-11099",
  repo: "django/django",
  version: "3.0",
  base_commit: "d26b2424",
  problem_statement: "Broken.",
  patch: PATCH,
  test_patch: TESTS,
  FAIL_TO_PASS: '["test_a (x.test_a.T)"]',
  PASS_TO_PASS: '["test_b (x.test_a.T)"]',
};

describe("a row as published", () => {
  test("of SWE-bench: lists as JSON text, Django's runner, the image by its id", () => {
    const instance = parseSweRow(ROW);
    expect(instance).toMatchObject({
      collection: "swebench",
      folder: "/testbed",
      baseCommit: "d26b2424",
      solution: PATCH,
      bug: null,
      tests: {
        format: "unittest",
        timeoutMs: 1_200_000,
        command: "./tests/runtests.py --verbosity 2 --settings=test_sqlite --parallel 1",
        targets: ["x.test_a"],
      },
      grading: {
        lists: { failToPass: ["test_a (x.test_a.T)"], passToPass: ["test_b (x.test_a.T)"] },
      },
    });
    const image = "docker://xingyaoww/sweb.eval.x86_64.django_s_django-11099";
    expect(imageOf(instance, undefined)).toBe(image);
    expect(imageOf(instance, "/images/{image_id}.sif")).toBe("/images/django_s_django-11099.sif");
  });

  test("of the fifth harness: its own script, format and image", () => {
    const own = { eval_script: "run", log_parser: "parse_log_sympy", image: "swebench/x:latest" };
    const instance = parseSweRow({ ...ROW, ...own });
    expect(instance.tests).toEqual({ format: "sympy", timeoutMs: 1_200_000, script: "run" });
    expect(imageOf(instance, undefined)).toBe("docker://swebench/x:latest");
  });

  test("of SWE-Gym: mypy's cases by name, and then no tests of ours beside them", () => {
    const cases = PATCH.replaceAll("a.py", "test-data/unit/check-a.test").replace(
      "+y",
      "+[case testOne]",
    );
    const row = { ...ROW, repo: "python/mypy", version: "1.4", test_patch: cases };
    expect(
      parseSweRow({ ...row, FAIL_TO_PASS: ["mypy/test/testcheck.py::S::testOne"] }),
    ).toMatchObject({
      tests: { format: "pytest", command: "pytest -n0 -rA", targets: ["-k", "testOne"] },
      probes: false,
    });
  });

  test("whose patch begins many cases and ends none takes no longer for it", () => {
    const cases = PATCH.replace("+y", `+${"[case ".repeat(100_000)}`);
    const row = { ...ROW, repo: "python/mypy", version: "1.4", test_patch: cases };
    const began = process.cpuUsage();
    expect(parseSweRow(row).tests).toMatchObject({ targets: ["a.py"] });
    expect(process.cpuUsage(began).user / 1e6).toBeLessThan(2);
  });

  test("of R2E-Gym as it is before any preparation: without an id, which its image gives", () => {
    const row = {
      repo_name: "orange3",
      docker_image: "namanjain12/orange3_final:abc",
      commit_hash: "abc",
      expected_output_json: '{"TestA.test_b": "PASSED"}',
      problem_statement: "Broken.",
    };
    expect(parseSweRow(row)).toMatchObject({
      ...{ id: "namanjain12_orange3_final_abc", repo: "orange3", collection: "r2egym" },
    });
  });

  test("of R2E-Gym: expected results instead of lists, and tests that the image brings", () => {
    const row = {
      data_kind: "r2egym",
      instance_id: "orange3_final_abc",
      docker_image: "namanjain12/orange3_final:abc",
      problem_statement: "Broken.",
      expected_output_json: '{"T.test_a": "PASSED"}',
    };
    const instance = parseSweRow(row);
    expect(instance).toMatchObject({
      collection: "r2egym",
      tests: { format: "r2e", timeoutMs: 300_000 },
      grading: { expected: { "T.test_a": "PASSED" } },
      hidden: ["/r2e_tests", "/testbed/r2e_tests", "/testbed/run_tests.sh"],
    });
    expect(imageOf(instance, undefined)).toBe("docker://namanjain12/orange3_final:abc");
  });

  test("of SWE-smith: the patch is the bug, and the tests' files are hidden", () => {
    const { test_patch: _, ...rest } = ROW;
    const lists = { FAIL_TO_PASS: ["tests/test_b.py::t"], PASS_TO_PASS: ["tests/test_a.py::t"] };
    const early = { ...rest, ...lists, image_name: "swesmith.x86_64.a__b.95280573" };
    expect(imageOf(parseSweRow(early), undefined)).toBe(
      "docker://jyangballin/swesmith.x86_64.a_1776_b.95280573",
    );
    expect(parseSweRow({ ...rest, ...lists, image_name: "swebench/swesmith.x" })).toMatchObject({
      collection: "swesmith",
      bug: PATCH,
      solution: null,
      hidden: ["tests/test_b.py"],
      tests: { format: "pytest-progress", targets: ["tests/test_a.py", "tests/test_b.py"] },
    });
  });

  test("of SWE-bench Multimodal: images in the row, and the image by its id", () => {
    const script = { eval_script: "run", log_parser: "parse_log_chart_js" };
    const row = { ...ROW, ...script, instance_id: "chartjs__Chart.js-1_0", image_assets: "{}" };
    const instance = parseSweRow(row);
    expect([instance.collection, instance.tests.format]).toEqual(["multimodal", "karma-failures"]);
    expect(imageOf(instance, undefined)).toBe(
      "docker://docker.io/swebench/sweb.eval.x86_64.chartjs_1776_chart.js-1:latest",
    );
  });

  test("with a runner of its own, also as SWE-rebench has it", () => {
    const config = { install_config: { test_cmd: "pytest -rA x", log_parser: "parse_log_pytest" } };
    expect(parseSweRow({ ...ROW, ...config, repo: "a/b" }).tests).toMatchObject({
      command: "pytest -rA x",
      format: "pytest",
      targets: ["tests/x/test_a.py"],
    });
  });
});

describe("a row that can't be used is refused by its field", () => {
  const cases: [field: string, row: Record<string, unknown>][] = [
    ["instance_id", { ...ROW, instance_id: "" }],
    ["repo", { ...ROW, repo: "nobody/knows" }],
    ["FAIL_TO_PASS", { ...ROW, FAIL_TO_PASS: "[]" }],
    ["FAIL_TO_PASS", { ...ROW, FAIL_TO_PASS: "not JSON" }],
    ["log_parser", { ...ROW, log_parser: "parse_log_unknown" }],
    ["data_kind", { ...ROW, data_kind: "unknown" }],
    ["test_patch", { ...ROW, test_patch: "no patch" }],
  ];
  test.each(cases)("%s", async (field, row) => {
    expect(await failureOf(async () => parseSweRow(row))).toMatchObject({
      code: "invalid_field",
      field: `instance.${field}`,
    });
  });
});
