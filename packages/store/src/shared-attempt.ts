/** Runs work on first use, and shares its result. After a failure, the next use runs it again. */
export const sharedAttempt = <T>(work: () => Promise<T>): (() => Promise<T>) => {
  let attempt: Promise<T> | undefined;
  return () => {
    attempt ??= work().catch((error: unknown) => {
      attempt = undefined;
      throw error;
    });
    return attempt;
  };
};
