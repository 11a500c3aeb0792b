import { type CallOptions, MillraceError, type Model, type Reply, textOf } from 'millrace';
import { silent } from 'millrace/teams';
import { asyncScheduler, type Observable, subscribeOn, throwError } from 'rxjs';
import type { Output, Scope } from './scope.js';

export type WorkResult =
  | {
      readonly status: 'done';
      readonly output: Output;
      /** The next components, if it chooses them. */
      readonly to?: readonly string[];
      /** The variables that it has set. */
      readonly variables?: ReadonlyMap<string, unknown>;
    }
  /** The flow was interrupted, or waits for an external result: it ends with this reply. */
  | { readonly status: 'ended'; readonly reply: Reply }
  | { readonly status: 'suspended'; readonly reply: Reply };

/** Runs a component once. Cold: emits once and completes, or errors. */
export type Work = (scope: Scope) => Observable<WorkResult>;

export const done = (output: Output): WorkResult => ({ status: 'done', output });

/** The options for the call of a component. Its ID is stable, so that a resumed call finds it again. */
export const childCall = (id: string, { options, streams, idPrefix }: Scope): CallOptions => {
  const { parent } = options;
  if (parent === undefined) return options;
  const callId = `${parent.callId}/${parent.toolCallId}/${idPrefix}${id}`;
  return { ...(streams ? options : silent(options)), callId };
};

/** For the rounds of a loop: after 20 ms, each lets others run first, as rounds that never wait block the process. */
export const yielding = ({ options: { parent } }: Scope) => {
  const scheduler = parent?.scheduler ?? asyncScheduler;
  const startedAt = scheduler.now();
  return <T>(round$: Observable<T>): Observable<T> =>
    Math.abs(scheduler.now() - startedAt) < 20 ? round$ : round$.pipe(subscribeOn(scheduler));
};

export const toResult = (reply: Reply, outputOf: (reply: Reply) => Output): WorkResult => {
  switch (reply.reason) {
    case 'interrupted':
      return { status: 'ended', reply };
    case 'suspended':
      return { status: 'suspended', reply };
    case 'refused':
      throw new MillraceError('refused', 'Its model refused to answer.');
    default:
      return done(outputOf(reply));
  }
};

/** The text of a reply. Everything else in it is for user interfaces. */
export const textOutput = (reply: Reply): Output => ({ text: textOf(reply), reply });

/** A placeholder for agents that never request their model. */
export const noModel: Model = {
  name: 'none',
  stream$: () =>
    throwError(() => new MillraceError('invalidState', 'This component has no model.')),
};
