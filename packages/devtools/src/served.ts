import { MillraceError } from 'millrace';
import { isText, type Rule } from 'millrace/values';
import { defer, mergeMap, type Observable } from 'rxjs';
import type { PageOptions } from './listen.js';
import type { Source } from './source.js';

export const pageRules: Readonly<Record<keyof PageOptions, Rule>> = {
  port: [
    (value) => Number.isInteger(value) && Number(value) >= 0 && Number(value) <= 65_535,
    'a port from 0 to 65535',
  ],
  token: isText,
};

/** Throws for a token that is too short. The message must not have it. */
export const checkToken = (owner: string, { token }: PageOptions): void => {
  if (token === undefined || /^[\w-]{16,}$/u.test(token)) return;
  throw new MillraceError(
    'config',
    `${owner}: 'token' must be a secret of at least 16 letters, digits, '-' and '_'.`,
  );
};

/** Serves the page of a source, and emits its address. Loads the server and the page when it is subscribed. Cold. */
export const served$ = (
  source: Source,
  options: PageOptions,
  keepsRunning: boolean,
): Observable<string> =>
  defer(() => import('./listen.js')).pipe(
    mergeMap(({ listen$ }) => listen$(source, options, keepsRunning)),
  );
