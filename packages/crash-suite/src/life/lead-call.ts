import {
  type Agent,
  type AgentEvent,
  type Input,
  isEvent,
  isMillraceError,
  type Reply,
  toolResults,
} from '@millrace/core';
import { verifyEvents } from '@millrace/core/testing';
import {
  catchError,
  defer,
  EMPTY,
  expand,
  filter,
  ignoreElements,
  map,
  merge,
  mergeMap,
  type Observable,
  of,
  tap,
} from 'rxjs';
import { hint, itemOf, sessionIdOf, task } from '../script/script-agent.js';
import type { ErrandCall, Said } from './said.js';

/** How a call is led. */
export interface Leading {
  readonly agent: Agent;
  readonly tell: (said: Said) => void;
  /** It cannot have begun before. */
  readonly isFirst: boolean;
}

/** One step of the way: a call, and the reply with which it has ended. */
export interface Led {
  readonly callId: string;
  readonly reply: Reply;
}

/** Leads a call to its end, from wherever it is: where it is suspended, the results are brought by a call that goes on. Emits each that has ended. */
export const leadCall$ = ({ callId }: ErrandCall, leading: Leading): Observable<Led> =>
  reply$(leading, callId, task).pipe(
    expand((led, index) => {
      const { suspensions = [] } = led.reply;
      if (suspensions.length === 0) return EMPTY;
      const results = suspensions.map(({ toolUse }) => [toolUse.id, settled] as const);
      return reply$(leading, `${callId}+${index + 1}`, toolResults(Object.fromEntries(results)));
    }),
  );

/** What somebody has found out. */
const settled = 'It was settled by hand.';

const reply$ = (
  { agent, tell, isFirst }: Leading,
  callId: string,
  input: Input,
): Observable<Led> => {
  const session = agent.session(sessionIdOf(callId));
  const begin$ = session.stream$(input, { callId });
  const event$ = isFirst ? begin$ : resumed$(agent, callId, begin$, tell);
  return event$.pipe(
    tap((event) => {
      if (event.type !== 'uncertain') return;
      const { then, toolUse } = event;
      const key = `${event.callId}/${toolUse.id}`;
      tell({ type: 'uncertain', key, item: itemOf(toolUse), then });
    }),
    mergeMap((event) =>
      isTurn(event) && event.callId === callId
        ? merge(of(event), session.steer$(hint, callId).pipe(ignoreElements()))
        : of(event),
    ),
    verifyEvents(),
    filter((event) => isEvent(event, 'postCall')),
    filter((event) => event.callId === callId),
    map(({ reply }) => {
      tell({ type: 'point', point: 'replied' });
      return { callId, reply };
    }),
  );
};

/** Each new turn hears a hint that comes while the one before is under way. */
const isTurn = ({ type, iteration }: AgentEvent): boolean =>
  type === 'preReasoning' && iteration < 4;

/** Goes on with a call where it was broken off, or begins it where nothing of it is written down. */
const resumed$ = (
  agent: Agent,
  callId: string,
  begin$: Observable<AgentEvent>,
  tell: Leading['tell'],
): Observable<AgentEvent> =>
  defer(() => {
    const from = performance.now();
    let isNew = false;
    const told = (first: string): void => {
      if (isNew) return;
      isNew = true;
      tell({ type: 'resumed', callId, first, ms: performance.now() - from });
    };
    return agent.resumeStream$(callId).pipe(
      tap(({ type }) => {
        if (type !== 'stepReplayed') told(type);
      }),
      catchError((error: unknown) => {
        if (!isMillraceError(error) || error.code !== 'invalidResume' || isNew) {
          throw error;
        }
        told('nothing');
        return begin$;
      }),
    );
  });
