import { errnoName } from "./errno.ts";

/** A path in the sandbox can't be used: `code` is `ENOENT`, `EISDIR`, `EFBIG` and the like. */
export class FileError extends Error {
  readonly code: string;

  constructor(
    code: string | number,
    readonly path: string,
    verb: string,
    detail = "",
  ) {
    const name = typeof code === "number" ? errnoName(code) : code;
    super(`cannot ${verb} ${path}: ${name}${detail === "" ? "" : ` (${detail})`}`);
    this.name = "FileError";
    this.code = name;
  }
}
