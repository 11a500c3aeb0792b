/** Whether something blocks for less than so many milliseconds, of ten tries the best. What other processes take does not count. */
export const isQuick = (milliseconds: number, run: () => unknown): boolean =>
  Array.from({ length: 10 }).some(() => {
    const begun = performance.now();
    const usage = process.cpuUsage();
    run();
    const { user, system } = process.cpuUsage(usage);
    return Math.min(performance.now() - begun, (user + system) / 1_000) < milliseconds;
  });
