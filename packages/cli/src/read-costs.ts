import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { type Layer, MillraceError } from 'millrace';
import { messageOf } from 'millrace/values';
import { asyncScheduler } from 'rxjs';
import type { PricesArguments } from './command-line/arguments.js';
import type { Setting } from './setting.js';

/**
 * Reads prices of the JSON file of the option or the environment: the layers that add costs to replies. None without a file. Old
 * prices print a warning. Rejects with `config` if the file has a mistake.
 */
export const readCosts = async ({
  given,
  environment,
  errorTheme,
}: Pick<Setting<PricesArguments>, 'given' | 'environment' | 'errorTheme'>): Promise<
  readonly Layer[]
> => {
  const { directory, env, stderr, scheduler = asyncScheduler } = environment;
  const path = given.prices || (env['MILLRACE_PRICES'] ?? '');
  if (path === '') return [];
  const text = await readFile(resolve(directory, path), 'utf8').catch(failed(path));
  // Loaded with the option only: every other start is quicker without it.
  const { cost, readPriceList } = await import('millrace/traffic');
  const list = readPriceList(parsed(path, text), `The price file ${path}`);
  const days = Math.floor((scheduler.now() - Date.parse(list.date)) / 86_400_000);
  if (days > oldAfterDays) {
    const warning = `The prices of ${path} are of ${list.date}, ${days} days ago. Check them, and set their date.`;
    stderr.write(`${errorTheme.colors.yellow(warning)}\n`);
  }
  return cost(list);
};

/** Vendors change their prices a few times a year. */
const oldAfterDays = 180;

const parsed = (path: string, text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    // The error of the parser quotes the file.
    throw new MillraceError('config', `The price file ${path} is not JSON.`);
  }
};

const failed = (path: string) => (cause: unknown) => {
  const why = messageOf(cause);
  throw new MillraceError('config', `The price file ${path} cannot be read: ${why}`, { cause });
};
