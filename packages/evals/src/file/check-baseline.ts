import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { MillraceError } from 'millrace';
import { checkOptions, isFlag, isObject, messageOf } from 'millrace/values';
import {
  baselineOf,
  compareToCases,
  type EvalComparison,
  readBaseline,
  type Recorded,
  type Tolerances,
} from '../baseline.js';
import type { EvalSummary } from '../results.js';

export interface CheckBaselineOptions {
  /** Whether to write the file in place of comparing with it. Default: only if it is missing, and `isCi` is false. */
  readonly update?: boolean | undefined;
  /** Whether a missing file is a failure. Default: false, and the file is written. */
  readonly isCi?: boolean | undefined;
  readonly tolerances?: Tolerances | undefined;
}

/**
 * The outcome for a baseline: compared, written, `missing` in CI, or `refused`: an evaluation with errors is no baseline, so nothing
 * was written.
 */
export type BaselineCheck =
  | { readonly status: 'compared'; readonly comparison: EvalComparison }
  | { readonly status: 'written' | 'missing' | 'refused' };

/**
 * Compares an evaluation with the baseline in a file, or writes the file. Give a path from the working directory, or a `URL`. The
 * file is replaced as a whole. Throws `config` if the file cannot be read or written, or is no baseline.
 */
export const checkBaseline = (
  summary: EvalSummary,
  file: string | URL,
  options: CheckBaselineOptions = {},
): BaselineCheck => {
  checkOptions('checkBaseline()', options, rules);
  const { update = false, isCi = false, tolerances } = options;
  const path = pathOf(file);
  const before = update ? undefined : readIfThere(path);
  if (before !== undefined) {
    return { status: 'compared', comparison: compareToCases(summary, before, tolerances) };
  }
  if (isCi && !update) return { status: 'missing' };
  if (summary.errors > 0) return { status: 'refused' };
  replaceFile(path, baselineOf(summary));
  return { status: 'written' };
};

/**
 * Whether there is a baseline in a file. Ask it before an evaluation, so that a damaged file is known before calls cost money.
 * Throws `config` if the file cannot be read, or is no baseline.
 */
export const hasBaseline = (file: string | URL): boolean => readIfThere(pathOf(file)) !== undefined;

const rules = { update: isFlag, isCi: isFlag, tolerances: isObject };

const pathOf = (file: string | URL): string => (file instanceof URL ? fileURLToPath(file) : file);

const readIfThere = (path: string): readonly Recorded[] | undefined => {
  const text = textIfThere(path);
  return text === undefined ? undefined : readBaseline(text, `The baseline '${path}'`);
};

const textIfThere = (path: string): string | undefined => {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    if (Reflect.get(Object(cause), 'code') === 'ENOENT') return undefined;
    throw failed('read', path, cause);
  }
};

/** A reader never sees half a file. */
const replaceFile = (path: string, text: string): void => {
  const draft = `${path}.${process.pid}.tmp`;
  try {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(draft, text);
    renameSync(draft, path);
  } catch (cause) {
    removeIfThere(draft);
    throw failed('written', path, cause);
  }
};

/** The first error is the one to report. */
const removeIfThere = (path: string): void => {
  try {
    rmSync(path, { force: true });
  } catch {
    // As when its folder is a file.
  }
};

const failed = (what: string, path: string, cause: unknown): MillraceError =>
  new MillraceError(
    'config',
    `The baseline '${path}' cannot be ${what}: ${messageOf(cause)}. Pass the path of a file.`,
    { cause },
  );
