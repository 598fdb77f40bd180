import { appendFileSync, existsSync, mkdirSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { makeImage } from "./image.ts";
import { ROWS } from "./rows.ts";

const [target, ...names] = process.argv.slice(2);
const wanted = names.length === 0 ? ROWS : ROWS.filter(({ id }) => names.includes(id));
if (!target || wanted.length < names.length) {
  console.error(`usage: swe-images FOLDER [ROW...], of: ${ROWS.map(({ id }) => id).join(" ")}`);
  process.exit(2);
}
const folder = resolve(target);
mkdirSync(folder, { recursive: true });
const list = join(folder, "rows.jsonl");
let failed = 0;
for (const source of wanted) {
  const own = join(folder, source.id);
  if (existsSync(own)) {
    console.error(`swe-images: ${source.id} is there already`);
    continue;
  }
  mkdirSync(own);
  try {
    const row = await makeImage(source, own);
    appendFileSync(list, `${JSON.stringify(row)}\n`);
    const { FAIL_TO_PASS: mended, PASS_TO_PASS: kept } = row;
    console.error(
      `swe-images: ${source.id}: ${mended.length} tests to be mended, ${kept.length} to be kept`,
    );
  } catch (error) {
    rmSync(own, { recursive: true, force: true });
    console.error(`swe-images: ${source.id} was not made: ${(error as Error).message}`);
    failed++;
  }
}
console.log(list);
process.exit(failed === 0 ? 0 : 1);
