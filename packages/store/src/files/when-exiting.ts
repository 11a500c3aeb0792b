const works = new Set<() => void>();

const all = (): void => works.forEach((work) => work());

/** Runs the work on process exit; returns a function that cancels it. All share one `exit` listener. */
export const whenExiting = (work: () => void): (() => void) => {
  if (works.size === 0) process.on('exit', all);
  works.add(work);
  return () => {
    works.delete(work);
    if (works.size === 0) process.off('exit', all);
  };
};
