// Imported by jest.config.ts and by the tests: `npm test` and Jest alone use the same counts.

/** The share of its full count that each test runs: `MILLRACE_RUNS=0.2` runs a fifth. */
const share = Number((process.env.MILLRACE_RUNS ??= '0.05'));
if (!(share > 0 && share <= 1)) throw new Error('MILLRACE_RUNS must be above 0, and 1 or less.');

const least = 30;

/** Scales a full count. Counts of up to `least` are never reduced: what they find by chance, few runs may miss. */
export const runs = (full) => Math.max(Math.min(full, least), Math.ceil(full * share));
