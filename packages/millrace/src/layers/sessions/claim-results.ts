import { concat, concatMap, defer, EMPTY, filter, type Observable } from 'rxjs';
import type { Agent } from '../../agent.js';
import { continueWith } from '../../flow/eventual.js';
import type { StoreOfCalls } from '../../journal/call-store-driver.js';
import { placed } from '../../memories/conversation.js';
import { continuing, suspensionsIn } from '../../memories/suspend.js';
import type { Call } from '../../seams/call.js';
import { isEarlier } from '../../seams/input.js';
import type { Context, Layer } from '../../seams/layer.js';
import { layerPlaces } from '../../seams/layer-places.js';
import { trusted } from '../../seams/through.js';
import { MillraceError } from '../../values/errors.js';
import type { Message } from '../../values/message.js';
import type { Session } from './sessions.js';
import type { SessionState } from './session-state.js';
import { knownCall, recordedCall$, type UnsavedCall, unsavedCalls$ } from './unsaved-calls.js';

export interface ClaimingSession {
  readonly agent: Pick<Agent, 'name'>;
  readonly session: Pick<Session, 'id' | 'saveState$'>;
  /** Without one, only results that are brought at the same time exclude each other. */
  readonly calls: StoreOfCalls | undefined;
  readonly save$: Observable<unknown>;
}

/**
 * Saves the session when a call has taken results of tools that wait, before it does anything with them. Of several processes
 * that bring results, the first to save continues; the others error with `conflict` and have no effect. A call that has taken a
 * result but is not in the session yet, such as one whose process died, keeps it until it is resumed.
 */
export const claimingResults = (claiming: ClaimingSession): Layer =>
  trusted({
    name: 'claimResults',
    priority: layerPlaces.conversation + 1,
    call: (context) => (next) => (call) => {
      const taken = call.status === 'prepared' ? resultsTaken(call, context) : [];
      if (taken.length === 0) return next(call);
      const { info, local } = context;
      const isOnBranch = local(placed).after !== undefined;
      return claimed$(claiming, { callId: info.callId, taken, isOnBranch }).pipe(
        continueWith(() => next(call)),
      );
    },
  });

const resultsTaken = ({ late }: Call, { local }: Pick<Context, 'local'>): readonly string[] => [
  ...local(continuing).results.keys(),
  ...late.filter((message) => !isEarlier(message)).flatMap(resultIds),
];

const resultIds = (message: Message): readonly string[] =>
  message.role === 'tool' ? message.content.map(({ toolCallId }) => toolCallId) : [];

interface Claim {
  readonly callId: string;
  readonly taken: readonly string[];
  readonly isOnBranch: boolean;
}

const claimed$ = (claiming: ClaimingSession, claim: Claim): Observable<unknown> =>
  claiming.session.saveState$().pipe(
    concatMap((state) => {
      assertWaiting(state, claim);
      return concat(
        othersChecked$(claiming, claim, state),
        defer(() => claiming.save$),
      );
    }),
  );

/** Throws if another call has brought a result since this one began: it may be resumed long after. */
const assertWaiting = ({ messages }: SessionState, { callId, taken, isOnBranch }: Claim): void => {
  if (isOnBranch) return;
  const others = messages.filter(({ id }) => !id.startsWith(`${callId}/`));
  const waiting = new Set(suspensionsIn(others).map(({ toolCall }) => toolCall.id));
  const answered = taken.find((id) => !waiting.has(id));
  if (answered === undefined) return;
  throw new MillraceError(
    'invalidResume',
    `The tool call '${answered}' already has a result of another call. That result counts, and the conversation has continued.`,
    { status: 409, userMessage: answeredMessage },
  );
};

/** Errors if another call has taken one of the results, and is not in the session yet. */
const othersChecked$ = (
  { agent, session, calls }: ClaimingSession,
  { callId, taken }: Claim,
  state: SessionState,
): Observable<never> => {
  if (calls === undefined) return EMPTY;
  return unsavedCalls$({ agent, session, calls }, state).pipe(
    filter((other) => other.callId !== callId && hasClaimed(other, state)),
    concatMap((other) =>
      recordedCall$(calls.driver, other.callId).pipe(
        concatMap(({ record }) => {
          const own = record.input.flatMap(resultIds);
          const id = taken.find((it) => own.includes(it));
          if (id !== undefined) throw takenBy(other.callId, id);
          return EMPTY;
        }),
      ),
    ),
  );
};

/** A call that runs has claimed its results if the session knows it; one that failed leaves them to others. */
const hasClaimed = ({ callId, status }: UnsavedCall, state: SessionState): boolean =>
  status === 'ended' ||
  status === 'suspended' ||
  (status !== 'failed' && knownCall(state, callId) !== undefined);

const answeredMessage = 'This has already been answered. Load the conversation again.';

const takenBy = (callId: string, toolCallId: string): MillraceError =>
  new MillraceError(
    'conflict',
    `The call '${callId}' has taken the result for the tool call '${toolCallId}', and is not in the session yet. Do not repeat the result: open the session again and call resume().`,
    { status: 409, userMessage: answeredMessage },
  );
