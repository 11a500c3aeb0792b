import { join } from 'node:path';
import { isMillraceError } from '@millrace/core';
import { createCallStore } from '@millrace/core/journal';
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
  mergeMap,
  type Observable,
  of,
  takeUntil,
  tap,
  toArray,
} from 'rxjs';
import { openPlace } from '../places/place.js';
import { planOf, waitPlan } from '../script/plan.js';
import { scriptAgent } from '../script/script-agent.js';
import { fileMemory } from './file-memory.js';
import { leadCall$ } from './lead-call.js';
import { outcome$ } from './outcome.js';
import { postEffect } from './post-effect.js';
import type { Errand, ErrandCall, Outcome, Point, Said } from './said.js';
import { watchedCalls, watchedMemory } from './watched.js';

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
  { life, place, url, isFirst }: Errand,
  call: ErrandCall,
  store: Store,
  tell: (said: Said) => void,
): Observable<Outcome> => {
  const at = (point: Point): void => tell({ type: 'point', point });
  const memory = fileMemory(join(place.directory, 'memory'));
  const agent = scriptAgent({
    plan: call.waits === true ? waitPlan : planOf(call.seed),
    mode: call.mode,
    pace: { chunkMs, onChunk: () => at('chunk') },
    approval$: () => {
      at('asked');
      return of(true).pipe(delay(approvalMs));
    },
    effect$: postEffect(url, life, () => at('answered')),
    memory: watchedMemory(memory, at),
    journal: createCallStore(watchedCalls(store.calls.driver, at)),
  });
  return leadCall$(call, { agent, tell, isFirst }).pipe(
    toArray(),
    concatMap((led) => outcome$(call.callId, led, store.calls.driver, memory)),
  );
};
