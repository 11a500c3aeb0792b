import { setImmediate as nextTurn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose_gc');
const collect: unknown = runInNewContext('gc');

const isCollector = (value: unknown): value is () => void => typeof value === 'function';

/** Collects what nobody holds, at once. */
const collectGarbage = (): void => {
  if (!isCollector(collect)) throw new Error('V8 gives no way to collect garbage.');
  collect();
};

/** The bytes that are held on the heap and in buffers beside it. What nobody holds is collected before. */
export const heldBytes = (): number => {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
};

/** Lets what ends in later turns end, and those hear of it who wait for objects to be collected. */
export const settled = async (): Promise<void> => {
  for (let turn = 0; turn < 5; turn += 1) {
    collectGarbage();
    await nextTurn();
  }
};
