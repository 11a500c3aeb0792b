import type { Readable, Writable } from 'node:stream';
import type { Observable, SchedulerLike } from 'rxjs';
import type { ModelChoice } from './choose-model.js';

/** A stream that may be a terminal. */
interface MaybeTerminal {
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}

/** The streams, variables and signals that the command uses. */
export interface Environment {
  /** The arguments, without the executable and the script. */
  readonly argv: readonly string[];
  readonly stdin: Readable & MaybeTerminal;
  readonly stdout: Writable & MaybeTerminal;
  readonly stderr: Writable & MaybeTerminal;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** As `process.platform`. */
  readonly platform: string;
  /** The working directory, in which the agent may read files. */
  readonly directory: string;
  /** Emits on every Ctrl-C. Subscribed to while a question is being answered. */
  readonly interrupt$: Observable<unknown>;
  /** Emits on every SIGTERM and SIGHUP. Subscribed to while a question is being answered. Default: never emits. */
  readonly terminate$?: Observable<unknown>;
  /** The models to choose from. Default: `modelChoices`. */
  readonly models?: readonly ModelChoice[];
  /** The timers of the command. Default: `asyncScheduler`. */
  readonly scheduler?: SchedulerLike;
}
