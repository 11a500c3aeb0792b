/** Text longer than this is never tried against a pattern. */
export const longestForPattern = 40;

const longestPattern = 200;

/**
 * Compiles a schema's `pattern` when it cannot run for long, and passes over any other.
 *
 * A pattern comes from whoever declared the tool, and backtracking may take exponential time. So it is used
 * only without back references and look-around, with no repetition of a group, and with at most three
 * repetitions of variable length: at `longestForPattern` characters that is some 10^4 steps at worst.
 */
export const compilePattern = (pattern: unknown): RegExp | undefined => {
  if (typeof pattern !== 'string' || pattern.length > longestPattern) return undefined;
  const bare = pattern.replace(/\\[^1-9k]/gu, '_').replace(/\[[^\]]*\]/gu, '_');
  const repetitions = bare.match(/[*+]|\{\d*,\d*\}/gu) ?? [];
  if (/\\|\(\?(?!:)|\)[*+{]/u.test(bare) || repetitions.length > 3) return undefined;
  try {
    return new RegExp(pattern, 'u');
  } catch {
    return undefined;
  }
};
