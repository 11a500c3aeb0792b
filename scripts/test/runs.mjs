/** The share of its full count that each test runs: `MILLRACE_RUNS=0.2` runs a fifth. */
const share = Number(process.env.MILLRACE_RUNS ?? 1);
if (!(share > 0 && share <= 1)) throw new Error('MILLRACE_RUNS must be above 0, and 1 or less.');

/** Scales a full count. Counts of up to ten are never reduced. */
export const runs = (full) => Math.max(Math.min(full, 10), Math.ceil(full * share));
