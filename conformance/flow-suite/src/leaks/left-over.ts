import type { Leaks } from './measure-leaks.js';

/** What is left of calls that must leave nothing, in words. The memory may grow by so many kilobytes for each 1,000 calls. */
export const leftOver = (
  { growthKb, resources, listeners, subscriptions, sessions, wrongs }: Leaks,
  mostKb: number,
): readonly string[] => {
  const all = [...wrongs];
  const must = (isRight: boolean, what: string): void => {
    if (!isRight) all.push(what);
  };
  must(growthKb <= mostKb, `the memory grows by ${growthKb.toFixed(1)} kB for each 1,000 calls`);
  must(resources.length === 0, `there are left: ${resources.join(', ')}`);
  must(listeners.left === 0, `${listeners.left} listeners are left at the signal`);
  must(listeners.most <= 1, `there were ${listeners.most} listeners at one signal`);
  must(subscriptions.left === 0, `${subscriptions.left} subscriptions are left`);
  must(sessions.left === 0, `${sessions.left} sessions are still held`);
  return all;
};
