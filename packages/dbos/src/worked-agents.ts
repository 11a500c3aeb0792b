import { type Agent, MillraceError } from 'millrace';
import {
  checkOptions,
  having,
  isDelay,
  isFunction,
  isRecord,
  numberFrom,
  oneOf,
  type Rule,
  wholeNumber,
} from 'millrace/values';
import type { Observable } from 'rxjs';
import type { Order } from './order.js';
import type { PerformedAgent, WorkerCallOptions } from './perform.js';

/** An agent whose calls a worker runs, with the limits of its queue. The last worker that registers sets them. */
export interface WorkedAgent extends PerformedAgent {
  /** Maximum calls of this agent at the same time in this process. Default: 10. */
  readonly concurrency?: number;
  /**
   * Maximum calls of this agent at the same time in all processes. With this or `rate`, each look for waiting calls costs a transaction
   * per waiting session: raise `pollMs`. Default: no limit.
   */
  readonly maxRunning?: number;
  /** Maximum calls of this agent that start within a period, in all processes. Default: no limit. */
  readonly rate?: { readonly calls: number; readonly perMs: number };
}

export interface WorkOptions {
  /**
   * Shuts the worker down when it emits: it takes no more calls, running ones end after their current step, and other workers
   * continue them. Completes then. Unsubscribing does the same immediately, in the middle of steps.
   */
  readonly until$?: Observable<unknown> | undefined;
  /** How long to wait for running steps on `until$`, in milliseconds. A call that waits for a decision is cut after this time. Default: 10,000. */
  readonly drainMs?: number | undefined;
  /** Options of a call that JSON cannot express, such as a context with the database of its user. Default: none. */
  readonly callOptions?: ((call: WorkedCall) => WorkerCallOptions) | undefined;
  /** How often each worker of these agents looks for waiting calls, in milliseconds; the last one that starts sets it. Default: 100. */
  readonly pollMs?: number | undefined;
  /** How often to look for workers that are gone, in milliseconds. Two looks in a row must agree. Default: 2,000. */
  readonly recoverMs?: number | undefined;
  /** Workers that may die while they run a call before it is given up. Default: 50. */
  readonly maxRecoveries?: number | undefined;
}

/** A call that a worker is about to run. */
export type WorkedCall = Pick<Order, 'callId' | 'agent' | 'sessionId' | 'options'>;

/** A notice of a worker. Not a part of any call. */
export type WorkNotice =
  | { readonly type: 'ready'; readonly worker: string }
  | { readonly type: 'started'; readonly callId: string; readonly agent: string }
  | { readonly type: 'ended'; readonly callId: string; readonly reason: string }
  | { readonly type: 'failed'; readonly callId: string; readonly error: MillraceError }
  /** Calls of workers that are gone, now back in their queues. */
  | { readonly type: 'recovered'; readonly callIds: readonly string[] }
  | { readonly type: 'warning'; readonly message: string };

const rules: Readonly<Record<keyof WorkOptions, Rule>> = {
  until$: having('subscribe', 'an Observable'),
  drainMs: isDelay,
  callOptions: isFunction,
  pollMs: wholeNumber(1),
  recoverMs: wholeNumber(1),
  maxRecoveries: wholeNumber(1),
};

const limitRules: Readonly<Record<keyof WorkedAgent, Rule>> = {
  agent: having('call$', 'an agent'),
  concurrency: wholeNumber(1),
  maxRunning: wholeNumber(1),
  rate: [
    (value) =>
      isRecord(value) && wholeNumber(1)[0](value['calls']) && numberFrom(1)[0](value['perMs']),
    '{ calls, perMs }, both of at least 1',
  ],
  onUncertain: oneOf('ask', 'report', 'rerun'),
};

export const checkWork = (agents: readonly (Agent | WorkedAgent)[], options: WorkOptions) => {
  checkOptions('work$()', options, rules);
  const worked = agents.map((it): WorkedAgent => ('agent' in it ? it : { agent: it }));
  worked.forEach((it) => checkOptions('An agent of work$()', it, limitRules, ['agent']));
  const names = worked.map(({ agent }) => agent.name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (names.length === 0) throw misuse('work$() needs an agent: work$([agent]).');
  if (twice !== undefined) {
    throw misuse(`work$() has two agents named '${twice}'. Their name is their queue.`);
  }
  return worked;
};

const misuse = (message: string): MillraceError => new MillraceError('config', message);
