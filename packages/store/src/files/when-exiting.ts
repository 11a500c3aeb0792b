const works = new Set<() => void>();

const all = (): void => works.forEach((work) => work());

/** Does something when the process ends by itself, unless that was left before. However many wait, the process has one listener, and none when all have left. */
export const whenExiting = (work: () => void): (() => void) => {
  if (works.size === 0) process.on('exit', all);
  works.add(work);
  return () => {
    works.delete(work);
    if (works.size === 0) process.off('exit', all);
  };
};
