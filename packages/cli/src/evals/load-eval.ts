import { existsSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { isMillraceError, MillraceError } from 'millrace';
import { isRecord, messageOf } from 'millrace/values';
import { from, map, type Observable, type ObservableInput } from 'rxjs';
import type * as evals from '@millrace/evals';
import type * as file from '@millrace/evals/file';

/** The functions of the package that the command uses. It is loaded from the project of the file. */
export type Evals = Pick<
  typeof evals & typeof file,
  'checkBaseline' | 'describeChanges' | 'evalTable' | 'hasBaseline' | 'summarize'
>;

const names = ['checkBaseline', 'describeChanges', 'evalTable', 'hasBaseline', 'summarize'];

/** An evaluation that is ready to run. */
export interface LoadedEval {
  /** The path as it was given. */
  readonly label: string;
  readonly path: string;
  readonly event$: Observable<evals.EvalEvent>;
  readonly evals: Evals;
}

/** A file that cannot run, because the command was misused. */
export interface Unusable {
  readonly problem: string;
}

/** Imports an evaluation, and the package next to it. Rejects if the program itself fails. */
export const loadEval = async (
  label: string,
  directory: string,
): Promise<LoadedEval | Unusable> => {
  const path = resolve(directory, label);
  if (!existsSync(path)) return { problem: `there is no file '${label}'.` };
  if (!statSync(path).isFile()) return { problem: `'${label}' is not a file.` };
  const found = await evalsFor([path, fileURLToPath(import.meta.url)]);
  if (found === undefined) return { problem: notInstalled };
  const module = await imported(path, label);
  if ('problem' in module) return module;
  const { exported: event$ } = module;
  if (!isObservable(event$)) return { problem: noEvaluation(label) };
  const checked$ = from(event$).pipe(
    map((event) => {
      if (isEvent(event)) return event;
      throw new MillraceError('config', noEvaluation(label));
    }),
  );
  return { label, path, event$: checked$, evals: found };
};

const noEvaluation = (label: string): string =>
  `'${label}' must export an evaluation: export default evaluate(agent, cases, scorers).`;

const notInstalled =
  'this command needs the package @millrace/evals in your project: npm install --save-dev @millrace/evals';

/** Of the project, so that the file and the command share one version; else the one beside the command. */
const evalsFor = async (places: readonly string[]): Promise<Evals | undefined> => {
  const [found] = places.flatMap((place) => {
    try {
      const { resolve: find } = createRequire(place);
      return [[find('@millrace/evals'), find('@millrace/evals/file')]];
    } catch {
      return [];
    }
  });
  if (found === undefined) return undefined;
  const modules: readonly unknown[] = await Promise.all(
    found.map((path): Promise<unknown> => import(pathToFileURL(path).href)),
  );
  const all = Object.fromEntries(modules.flatMap((it) => (isRecord(it) ? Object.entries(it) : [])));
  if (isEvals(all)) return all;
  throw new MillraceError(
    'config',
    'The installed version of @millrace/evals does not fit this command. Install the same version of both.',
  );
};

const isEvals = (value: unknown): value is Evals =>
  isRecord(value) && names.every((name) => typeof value[name] === 'function');

const imported = async (
  path: string,
  label: string,
): Promise<{ readonly exported: unknown } | Unusable> => {
  try {
    const module: unknown = await import(pathToFileURL(path).href);
    return { exported: isRecord(module) ? module['default'] : undefined };
  } catch (cause) {
    if (isMillraceError(cause)) throw cause;
    if (Reflect.get(Object(cause), 'code') === 'ERR_UNKNOWN_FILE_EXTENSION') {
      return {
        problem: `this version of Node.js cannot import '${label}'. Compile it to JavaScript, or use Node.js 22.18 or newer.`,
      };
    }
    const why = `'${label}' cannot be imported: ${messageOf(cause)}`;
    throw new MillraceError('config', why, { cause });
  }
};

/** RxJS of the project may be another copy. */
const isObservable = (value: unknown): value is ObservableInput<unknown> =>
  typeof Reflect.get(Object(value), 'subscribe') === 'function';

const isEvent = (value: unknown): value is evals.EvalEvent =>
  isRecord(value) && (value['type'] === 'case' || value['type'] === 'summary');
