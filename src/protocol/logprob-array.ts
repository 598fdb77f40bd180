/**
 * Log-probabilities as binary numbers: of 32 bits where that loses nothing, which it does not where an
 * engine computes with them.
 */
export function logprobArray(values: readonly number[]): Float32Array | Float64Array {
  const short = Float32Array.from(values);
  return values.every((value, index) => value === short[index]) ? short : Float64Array.from(values);
}
