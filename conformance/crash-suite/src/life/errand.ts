import { isMillraceError } from 'millrace';
import { createCallStore, journal } from 'millrace/journal';
import type { Store } from '@millrace/store';
import {
  catchError,
  concat,
  concatMap,
  defer,
  delay,
  EMPTY,
  from,
  ignoreElements,
  merge,
  mergeMap,
  type Observable,
  of,
  skip,
  Subject,
  take,
  takeUntil,
  tap,
  toArray,
} from 'rxjs';
import { openPlace } from '../places/place.js';
import { planOf, waitPlan } from '../script/plan.js';
import { scriptAgent, sessionIdOf } from '../script/script-agent.js';
import { inMemory, inStore } from './conversation.js';
import { leadCall$ } from './lead-call.js';
import { outcome$ } from './outcome.js';
import { postEffect } from './post-effect.js';
import type { Deed, Errand, ErrandCall, Outcome, Point, Said } from './said.js';
import { watchedCalls, watchedMemory, watchedSessions } from './watched.js';

/** Between two chunks of a model. */
const chunkMs = 1;

/** Until somebody has approved of a tool: a process that is killed meanwhile leaves the answer to the next one. */
const approvalMs = 5;

/** Leads all calls of an errand to their ends at the same time, and tells what happens. Completes when the store is closed, which is also when it is to leave. Cold. */
export const errand$ = (
  errand: Errand,
  tell: (said: Said) => void,
  leave$: Observable<unknown>,
): Observable<never> =>
  defer(() => {
    const store = openPlace(errand.place);
    const calls$ = from(errand.calls).pipe(
      mergeMap((call) =>
        ended$(errand, call, store, tell).pipe(
          tap((outcome) => tell({ type: 'ended', outcome })),
          catchError((error: unknown) => {
            const code = isMillraceError(error) ? { code: error.code } : {};
            tell({ type: 'failed', callId: call.callId, ...code, message: String(error) });
            return EMPTY;
          }),
        ),
      ),
    );
    return concat(calls$.pipe(takeUntil(leave$)), store.close$()).pipe(ignoreElements());
  });

const ended$ = (
  { life, url, isFirst }: Errand,
  call: ErrandCall,
  store: Store,
  tell: (said: Said) => void,
): Observable<Outcome> => {
  const { callId } = call;
  const at = (point: Point): void => tell({ type: 'point', point });
  const does = (deed: Deed): void => tell({ type: 'deed', callId, deed });
  const effect$ = postEffect(url, life, () => at('answered'));
  const heard$ = new Subject<unknown>();
  const durable = journal(
    createCallStore(
      watchedCalls(store.calls.driver, at, (records) => {
        if (records.some(({ name }) => name === `${callId}/interrupt`)) does('isInterrupted');
      }),
    ),
    { onUncertain: call.mode },
  );
  const plan = call.waits === true ? waitPlan : planOf(call.seed);
  const agent = scriptAgent({
    planFor: () => plan,
    pace: {
      chunkMs,
      onAsk: () => does('asks'),
      onChunk: () => {
        at('chunk');
        heard$.next(undefined);
      },
    },
    approve: () => {
      at('asked');
      return of(true).pipe(delay(approvalMs));
    },
    effect$: (effect) => {
      does('runs');
      return effect$(effect);
    },
    journal: durable,
  });
  const sessionId = sessionIdOf(callId);
  const { talk$, load$ } =
    call.isKept === true
      ? inStore(agent, watchedSessions(store.sessions, at), durable, sessionId)
      : inMemory(agent, watchedMemory(store.memory, at), store.memory, durable, sessionId);
  return talk$.pipe(
    concatMap((talk) => {
      const stop$ = heard$.pipe(
        skip((call.interruptAt ?? Infinity) - 1),
        take(1),
        tap(() => talk.interrupt('Stop.')),
        ignoreElements(),
      );
      const led$ = leadCall$(call, { talk, tell, isFirst }).pipe(toArray());
      return merge(led$, stop$);
    }),
    take(1),
    concatMap((led) => outcome$(callId, led, store.calls.driver, load$)),
  );
};
