/** Does work that need not succeed. */
export const quietly = (work: () => void): void => {
  try {
    work();
  } catch {
    // Who is gone is gone: the others see it.
  }
};
