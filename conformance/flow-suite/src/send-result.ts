/** Sends what came of a job to the process that asked for it, and ends: whatever is left over must not keep this one. */
export const sendResult = (result: unknown): void => {
  process.send?.(result, undefined, undefined, () => process.exit(0));
};
