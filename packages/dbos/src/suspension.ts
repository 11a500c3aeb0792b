import { isMillraceError, MillraceError, type Suspension, toolOutput } from 'millrace';
import type { CallStore } from 'millrace/journal';
import { isRecord, parsedJson } from 'millrace/values';
import {
  catchError,
  concatMap,
  defaultIfEmpty,
  EMPTY,
  filter,
  last,
  map,
  type Observable,
} from 'rxjs';
import type { Database } from './database.js';
import { stored$ } from './errors.js';
import { continued, expiryOf, type Order } from './order.js';

/** The tool calls whose results a suspended call waits for. */
export const awaited$ = (calls: CallStore, callId: string): Observable<readonly string[]> =>
  calls.driver.read$(callId, { kind: 'step' }).pipe(
    concatMap((records) => records),
    filter(({ name }) => name === `${callId}/reply`),
    map(({ text }) => {
      const reply: unknown = parsedJson(text);
      const suspensions: unknown = isRecord(reply) ? reply['suspensions'] : undefined;
      return Array.isArray(suspensions) ? suspensions.flatMap(toolCallIdIn) : [];
    }),
    defaultIfEmpty([]),
    last(),
  );

const toolCallIdIn = (suspension: unknown): readonly string[] => {
  const toolCall = isRecord(suspension) ? suspension['toolCall'] : undefined;
  const id = isRecord(toolCall) ? toolCall['id'] : undefined;
  return typeof id === 'string' ? [id] : [];
};

export const checkResults = (callId: string, ids: readonly string[], results: object): void => {
  if (ids.length === 0) {
    throw new MillraceError('invalidResume', `The call '${callId}' is not suspended.`);
  }
  const given = Object.keys(results);
  if (given.length === ids.length && given.every((id) => ids.includes(id))) return;
  throw new MillraceError(
    'invalidResume',
    `The call '${callId}' waits for the results of ${ids.join(', ')}, but got ${given.join(', ') || 'none'}. Supply them together: answer$('${callId}', { '${ids[0] ?? ''}': result }).`,
  );
};

/** Marks the session of a call that is suspended: its later calls wait, and its time may be limited. Emits once. */
export const suspended$ = (
  database: Database,
  order: Order & { readonly sessionId: string },
  suspensions: readonly Suspension[],
): Observable<unknown> => {
  const { callId, sessionId, answerWithinMs: delayMs } = order;
  const toolCallIds = suspensions.map(({ toolCall }) => toolCall.id);
  const expires = { callId, sessionId, toolCallIds };
  // In a place of its own: the session waits for it.
  const expiry = { ...order, callId: expiryOf(callId), sessionId: undefined, input: '', expires };
  return stored$(() => database.suspend(order, expiry, { delayMs }));
};

/** Starts the call that continues a suspended one whose time is over, unless the answer came first. Completes when done. */
export const expired$ = (
  database: Database,
  order: Order,
  { toolCallIds, ...suspended }: NonNullable<Order['expires']>,
  version: string | undefined,
): Observable<never> => {
  const late = toolOutput({ content: 'There was no answer in time.', isError: true });
  const results = Object.fromEntries(toolCallIds.map((id) => [id, late]));
  const own = { ...order, ...suspended };
  return stored$(() => database.answer(own, continued(own, results), { version })).pipe(
    concatMap(() => EMPTY),
    catchError((error: unknown) => {
      if (isMillraceError(error) && error.code === 'conflict') return EMPTY;
      throw error;
    }),
  );
};
