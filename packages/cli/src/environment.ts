import type { Readable, Writable } from 'node:stream';
import type { Observable, SchedulerLike } from 'rxjs';
import type { ModelChoice } from './choose-model.js';

/** A stream that may be a terminal. */
interface MaybeTerminal {
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}

/** All that the command has of the world. */
export interface Environment {
  /** The arguments, without those that started the program. */
  readonly argv: readonly string[];
  readonly stdin: Readable & MaybeTerminal;
  readonly stdout: Writable & MaybeTerminal;
  readonly stderr: Writable & MaybeTerminal;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** As `process.platform` says it. */
  readonly platform: string;
  /** The working directory: files below it may be read. */
  readonly directory: string;
  /** Emits at each Ctrl-C. Subscribed to while a question is being answered. */
  readonly interrupt$: Observable<unknown>;
  /** Emits at each SIGTERM and SIGHUP. Subscribed to while a question is being answered. Default: none come. */
  readonly terminate$?: Observable<unknown>;
  /** The models to choose from. Default: `modelChoices`. */
  readonly models?: readonly ModelChoice[];
  /** Times the wait for a question from a pipe, the pauses of a run that is played back, and the end by a signal. Default: RxJS's `asyncScheduler`. */
  readonly scheduler?: SchedulerLike;
}
