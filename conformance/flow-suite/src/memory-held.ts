import { setImmediate as nextTurn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose_gc');
const collect: unknown = runInNewContext('gc');

const isCollector = (value: unknown): value is () => void => typeof value === 'function';

/** Collects what nobody holds, at once. */
export const collectGarbage = (): void => {
  if (!isCollector(collect)) throw new Error('V8 gives no way to collect garbage.');
  collect();
};

/** The memory that is held, in megabytes: on the heap and in buffers beside it. What nobody holds is collected before. */
export const heldMb = (): number => {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return (heapUsed + external) / 1_000_000;
};

/** As `heldMb`, once what ends in later turns has ended, and those who wait for objects to be collected have heard of it. */
export const settledMb = async (): Promise<number> => {
  for (let turn = 0; turn < 5; turn += 1) await nextTurn();
  collectGarbage();
  await nextTurn();
  return heldMb();
};
