import {
  type AgentEvent,
  type Input,
  isEvent,
  isMillraceError,
  type Reply,
  toolResults,
} from 'millrace';
import { verifyEvents } from 'millrace/testing';
import {
  catchError,
  concat,
  defer,
  EMPTY,
  expand,
  filter,
  groupBy,
  ignoreElements,
  map,
  merge,
  mergeMap,
  type MonoTypeOperatorFunction,
  type Observable,
  of,
  type OperatorFunction,
  tap,
} from 'rxjs';
import { itemOf, taskOf } from '../script/script-agent.js';
import { hint } from '../script/script-model.js';
import type { ErrandCall, Said } from './said.js';
import type { Talk } from './talk.js';

/** How a call is led. */
export interface Leading {
  readonly talk: Talk;
  readonly tell: (said: Said) => void;
  /** It cannot have begun before. */
  readonly isFirst: boolean;
}

/** One step of the way: a call, and the reply with which it has ended. */
export interface Led {
  readonly callId: string;
  readonly reply: Reply;
}

/**
 * Leads a call to its end, from wherever it is: first the session goes on with what it lacks; where the call is suspended, the results are brought by a call that goes
 * on. Emits each that has ended.
 */
export const leadCall$ = ({ callId, seed }: ErrandCall, leading: Leading): Observable<Led> =>
  defer(() => {
    const { talk, tell, isFirst } = leading;
    const known = new Map<string, Led>();
    const lacking$ = talk.lacking$.pipe(
      toldFirst(tell),
      ledBy(leading),
      tap((led) => known.set(led.callId, led)),
      ignoreElements(),
    );
    const led$ = (id: string, input: Input): Observable<Led> =>
      defer(() => {
        const led = known.get(id);
        return led === undefined ? reply$(leading, id, input) : of(led);
      });
    const chain$ = led$(callId, taskOf(seed)).pipe(
      expand((led, index) => {
        const { suspensions = [] } = led.reply;
        if (suspensions.length === 0) return EMPTY;
        const results = suspensions.map(({ toolCall }) => [toolCall.id, settled] as const);
        return led$(`${callId}+${index + 1}`, toolResults(Object.fromEntries(results)));
      }),
    );
    return concat(isFirst ? EMPTY : lacking$, chain$);
  });

/** What somebody has found out. */
const settled = 'It was settled by hand.';

const reply$ = (leading: Leading, callId: string, input: Input): Observable<Led> => {
  const { talk, tell, isFirst } = leading;
  const begin$ = talk.stream$(input, { callId });
  const event$ = isFirst ? begin$ : resumed$(talk, callId, begin$, tell);
  return event$.pipe(ledBy(leading));
};

/** Tells what is uncertain, speaks to the call in each turn, and emits what it has come to. */
const ledBy =
  ({ talk, tell }: Leading): OperatorFunction<AgentEvent, Led> =>
  (event$) =>
    event$.pipe(
      tap((event) => {
        if (event.type !== 'uncertain') return;
        const { then, toolCall } = event;
        const key = `${event.callId}/${toolCall.id}`;
        tell({ type: 'uncertain', key, item: itemOf(toolCall), then });
      }),
      mergeMap((event) =>
        isTurn(event) && isOutermost(event)
          ? merge(of(event), talk.steer$(hint, event.callId).pipe(ignoreElements()))
          : of(event),
      ),
      // A session may go on with several calls, or with none.
      groupBy(({ rootId }) => rootId),
      mergeMap((call$) => call$.pipe(verifyEvents())),
      filter(isOutermost),
      filter((event) => isEvent(event, 'postCall')),
      map(({ callId, reply }) => {
        tell({ type: 'point', point: 'replied' });
        return { callId, reply };
      }),
    );

const isOutermost = ({ callId, rootId }: AgentEvent): boolean => callId === rootId;

/** Each new turn hears a hint that comes while the one before is under way. */
const isTurn = ({ type, iteration }: AgentEvent): boolean =>
  type === 'preReasoning' && iteration < 4;

/** Goes on with a call where it was broken off, or begins it where nothing of it is written down. */
const resumed$ = (
  talk: Talk,
  callId: string,
  begin$: Observable<AgentEvent>,
  tell: Leading['tell'],
): Observable<AgentEvent> =>
  defer(() => {
    const from = performance.now();
    let hasBegun = false;
    return talk.resumeStream$(callId).pipe(
      toldFirst(tell),
      tap(() => {
        hasBegun = true;
      }),
      catchError((error: unknown) => {
        if (!isMillraceError(error) || error.code !== 'invalidResume' || hasBegun) throw error;
        tell({ type: 'resumed', callId, first: 'nothing', ms: performance.now() - from });
        return begin$;
      }),
    );
  });

/** Tells what a call that goes on does first that is new. */
const toldFirst =
  (tell: Leading['tell']): MonoTypeOperatorFunction<AgentEvent> =>
  (event$) =>
    defer(() => {
      const from = performance.now();
      const told = new Set<string>();
      return event$.pipe(
        tap(({ type: first, rootId: callId }) => {
          if (first === 'stepReplayed' || told.has(callId)) return;
          told.add(callId);
          tell({ type: 'resumed', callId, first, ms: performance.now() - from });
        }),
      );
    });
