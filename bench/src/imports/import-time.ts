import { fileURLToPath } from 'node:url';
import { isNumber, isShape } from '../guard.js';
import { startChild } from '../runner/children.js';
import { onlyMessage } from '../runner/only-message.js';

/** How long an import took in a fresh process, in milliseconds. */
export interface ImportTime {
  readonly ms: number;
  readonly cpuMs: number;
}

const isImportTime = isShape<ImportTime>({ ms: isNumber, cpuMs: isNumber });

/** Imports packages, by name, or files in a fresh process. Rejects where one cannot be imported. */
export const importTime = async (names: readonly string[], node: string): Promise<ImportTime> => {
  const module = fileURLToPath(new URL('../../dist/imports/process.js', import.meta.url));
  const child = startChild(module, names, { execPath: node });
  const time = await onlyMessage(child, 60_000);
  if (!isImportTime(time)) throw new Error('It says something else than its time.');
  return time;
};
