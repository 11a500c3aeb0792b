import type { Crashed } from './driver/crash-store.js';

/** Shows on stderr how far a store is: in one line of a terminal, else in a line at each tenth. */
export const progressOf = (store: string, kills: number): ((soFar: Crashed) => void) => {
  const { isTTY } = process.stderr;
  const write = (text: string): void => void process.stderr.write(text);
  write(`${store}: 0 of ${kills} kills${isTTY ? '' : '\n'}`);
  let tenths = 0;
  return ({ trials, ms }) => {
    const done = trials.reduce((all, trial) => all + trial.kills, 0);
    const line = `${store}: ${done} of ${kills} kills, ${(ms / 1_000).toFixed(0)} s`;
    if (isTTY) {
      write(`\r${line}${done < kills ? '' : '\n'}`);
      return;
    }
    const before = tenths;
    tenths = Math.floor((done * 10) / Math.max(1, kills));
    if (tenths > before) write(`${line}\n`);
  };
};
