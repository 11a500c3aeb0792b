/** Runs cleanup that may fail. */
export const ignoreErrors = (work: () => void): void => {
  try {
    work();
  } catch {
    // Other processes detect a leftover lock.
  }
};
