type Json = Record<string, unknown>;

/** How a ByteLevel pre-tokenizer cuts text into words, if it does. */
const WORDS = String.raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`;

/**
 * A pre-tokenizer whose words are cut by a Split instead of by ByteLevel itself: the library's ByteLevel takes U+FEFF for
 * white space and U+0085 for none, as JavaScript does; in a Split it knows better.
 */
export function splitByteLevel(given: unknown): unknown {
  const config = given as Json | null;
  if (config?.type === "Sequence" && Array.isArray(config.pretokenizers)) {
    return { ...config, pretokenizers: config.pretokenizers.map(splitByteLevel) };
  }
  if (config?.type !== "ByteLevel" || config.use_regex === false || config.add_prefix_space) {
    return given;
  }
  const split = { type: "Split", pattern: { Regex: WORDS }, behavior: "Isolated", invert: false };
  return { type: "Sequence", pretokenizers: [split, { ...config, use_regex: false }] };
}
