/** Controls but tab and newline, and what turns or hides text: all that a terminal obeys. */
const OBEYED = new RegExp(
  [
    String.raw`[\0-\x08\x0b-\x1f\x7f-\x9f]`, // the controls of C0 and C1
    String.raw`[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]`, // direction
    String.raw`[\u2028\u2029\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]`, // line ends, marks, tags
  ].join("|"),
  "gu",
);

/**
 * Text with what a terminal would obey written out (`\u001b`). Within JSON that is the same value, because such a
 * character stands in strings alone.
 */
export function printable(text: string): string {
  return text.replace(OBEYED, (character) =>
    Array.from({ length: character.length }, (_, index) => {
      return `\\u${character.charCodeAt(index).toString(16).padStart(4, "0")}`;
    }).join(""),
  );
}

/** Writes results. What models, tools, rows and servers have written can't command the terminal. */
export function print(text: string): void {
  process.stdout.write(printable(text));
}

/** Writes what is no result: messages, progress, the log. */
export function printError(text: string): void {
  process.stderr.write(printable(text));
}

/** Writes a picture that moves the cursor; whatever others have written in it has to be `printable` before. */
export function draw(stream: NodeJS.WriteStream, picture: string): void {
  stream.write(picture);
}
