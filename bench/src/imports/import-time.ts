import { fileURLToPath } from 'node:url';
import { isListOf, isNumber, isShape, isText } from '../guard.js';
import { startChild } from '../runner/children.js';
import { onlyMessage } from '../runner/only-message.js';

/** How long an import took in a fresh process, in milliseconds. */
export interface ImportTime {
  readonly ms: number;
  readonly cpuMs: number;
}

const isImportTime = isShape<ImportTime>({ ms: isNumber, cpuMs: isNumber });

const isListOfTexts = isListOf(isText);

/** Imports packages, by name, or files in a fresh process. Rejects where one cannot be imported. */
export const importTime = async (names: readonly string[], node: string): Promise<ImportTime> => {
  const time = await answerOf('process', names, node);
  if (!isImportTime(time)) throw new Error('It says something else than its time.');
  return time;
};

/** The files that Node loads for such an import, in a process of its own, because it takes time to watch them. */
export const filesLoaded = async (
  names: readonly string[],
  node: string,
): Promise<readonly string[]> => {
  const files = await answerOf('files', names, node);
  if (!isListOfTexts(files)) throw new Error('It says something else than its files.');
  return files;
};

const answerOf = (program: string, names: readonly string[], node: string): Promise<unknown> => {
  const module = fileURLToPath(new URL(`../../dist/imports/${program}.js`, import.meta.url));
  return onlyMessage(startChild(module, names, { execPath: node }), 60_000);
};
