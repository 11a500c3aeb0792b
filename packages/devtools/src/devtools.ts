import { type Agent, MillraceError } from 'millrace';
import type { CallStore, Journal } from 'millrace/journal';
import {
  checkOptions,
  having,
  isFlag,
  isFunction,
  isRecord,
  isText,
  messageOf,
  type Rule,
} from 'millrace/values';
import { EMPTY, isObservable, type Observable, ReplaySubject, Subscription, tap } from 'rxjs';
import { createAgentSource } from './agent-source.js';
import { checkToken, pageRules, served$ } from './served.js';

/** Options of `devtools`. */
export interface DevtoolsOptions {
  /** The port on 127.0.0.1. Default: 4983, or a free one if it is taken; 0 for a free one. */
  readonly port?: number | undefined;
  /** The secret in the address of the page. Default: a random one. Set it to keep the address over restarts. */
  readonly token?: string | undefined;
  /** The name above the calls. Default: the file of the program. */
  readonly title?: string | undefined;
  /** Turns the devtools on or off. Default: on, unless `NODE_ENV` is `production` or `test`. */
  readonly enabled?: boolean | undefined;
  /**
   * Records every call, and keeps the process running, so you can inspect a short script. Default: false:
   * calls are recorded while a page is open, and the process may end.
   */
  readonly keepOpen?: boolean | undefined;
  /**
   * Records calls in memory, so they can be forked. A journal needs unique call ids and values that JSON can express.
   * Default: false, so inspection never changes a call.
   */
  readonly forks?: boolean | undefined;
  /** The journal of the agent, if it has one, so its calls can be forked. Takes precedence over `forks`. */
  readonly journal?: Journal<CallStore> | undefined;
  /** Called with a line that has the address. Default: `console.error`. */
  readonly print?: ((line: string) => void) | undefined;
}

/** The devtools of a process. */
export interface Devtools {
  /** Returns the agent, with calls that the page shows. Without devtools, it is the agent itself. */
  readonly inspect: <A extends Agent>(agent: A) => A;
  /** Emits the address of the page, once it listens. Without devtools, it completes empty. Errors with `config` if it cannot listen. */
  readonly address$: Observable<string>;
  /** Closes the page, and continues held calls. */
  readonly close: () => void;
}

/**
 * Returns an agent whose calls a local page shows while they run, as a marble diagram: steps back in time, forks,
 * breakpoints. Prints the address of the page, which only this machine can open. Without an open page, calls run on the
 * agent itself. In production and in tests, it returns the agent. Inspect an agent once, not for each request.
 *
 * @example
 * ```ts
 * const agent = devtools(createAgent({ model, tools }));
 * // Devtools: http://127.0.0.1:4983/#token=…
 * ```
 */
export const devtools = <A extends Agent>(agent: A, options: DevtoolsOptions = {}): A => {
  checkAgent('devtools()', agent);
  return createDevtools(options).inspect(agent);
};

/** Creates devtools for several agents, with one page. They start immediately. */
export const createDevtools = (options: DevtoolsOptions = {}): Devtools => {
  checkOptions('devtools()', options, rules);
  checkToken('devtools()', options);
  const { enabled = isDevelopment() } = options;
  if (!enabled) return { inspect: (agent) => agent, address$: EMPTY, close: () => undefined };
  const { keepOpen = false, print = console.error } = options;
  const running = new Subscription();
  const { source, inspect, running$ } = createAgentSource(options);
  const address$ = new ReplaySubject<string>(1);
  const failed = {
    error: (error: unknown): void => {
      print(`Devtools: ${messageOf(error)}`);
    },
  };
  running.add(running$.subscribe(failed));
  running.add(
    served$(source, options, keepOpen)
      .pipe(tap((address) => print(`Devtools: ${address}`)))
      .subscribe(address$),
  );
  // The caller may not listen for the error.
  running.add(address$.subscribe(failed));
  return {
    inspect: (agent) => {
      checkAgent('inspect()', agent);
      return inspect(agent);
    },
    address$: address$.asObservable(),
    close: () => {
      running.unsubscribe();
    },
  };
};

/** Node sets the variable; without it, this is a browser or a worker. */
const isDevelopment = (): boolean =>
  typeof process !== 'undefined' && !['production', 'test'].includes(process.env['NODE_ENV'] ?? '');

const checkAgent = (owner: string, agent: unknown): void => {
  if (isRecord(agent) && isObservable(agent['events$']) && having('with', '')[0](agent)) return;
  throw new MillraceError('config', `${owner} takes an agent, such as one from createAgent().`);
};

const rules: Readonly<Record<keyof DevtoolsOptions, Rule>> = {
  ...pageRules,
  title: isText,
  enabled: isFlag,
  keepOpen: isFlag,
  forks: isFlag,
  journal: having('resume$', 'a journal, such as journal(store)'),
  print: isFunction,
};
