import { catchError, concat, defer, EMPTY, ignoreElements, type Observable } from 'rxjs';
import type { Conversation } from './conversation-state.js';
import { Refusal } from './responses.js';
import type { Server, Verdict } from './server.js';
import { type Approval, approvalsIn, toolsIn } from './ui-message.js';

/** A question for approval, with the arguments that the user has seen: none for a tool of a sub-agent. */
export interface SeenApproval extends Approval {
  readonly input?: unknown;
}

interface Approving {
  readonly server: Pick<Server, 'decide$' | 'wait$'>;
  /** The state of the conversation. */
  readonly state: () => Conversation | undefined;
}

/**
 * Decides on a tool call, and completes when the verdict counts. If the server cannot be reached or has started again, it waits for the
 * connection, and decides on the question that the server then asks again about the same tool call, if its arguments are those that the user has
 * seen. Completes, too, if that no longer waits. Errors with the refusal of the server, if the arguments are others or were not seen, or when it
 * has waited long enough. Cold.
 */
export const approving$ = (
  options: Approving,
  { toolCallId, token = '', input }: SeenApproval,
  verdict: Verdict,
): Observable<never> => {
  const { server, state } = options;
  const { wait$ } = server;
  const isAskedIn = ({ messages }: Conversation) =>
    messages
      .slice(-1)
      .flatMap(approvalsIn)
      .find((it) => it.toolCallId === toolCallId);
  const isSeen = ({ messages }: Conversation) => {
    const tool = messages
      .slice(-1)
      .flatMap(toolsIn)
      .find((it) => it.toolCallId === toolCallId);
    return input !== undefined && JSON.stringify(tool?.input) === JSON.stringify(input);
  };
  const attempt$ = (by: string, failures: number): Observable<never> =>
    server.decide$(by, verdict).pipe(
      catchError((error: unknown) => {
        if (!mayPass(error)) throw error;
        return concat(
          wait$(failures).pipe(ignoreElements()),
          defer(() => next$(by, failures + 1, error)),
        );
      }),
    );
  const next$ = (by: string, failures: number, error: unknown): Observable<never> => {
    const shown = state();
    if (shown === undefined) throw error;
    const asked = isAskedIn(shown);
    if (asked === undefined && !shown.isReconnecting) return EMPTY;
    const isOld = error instanceof Refusal && (asked?.token ?? by) === by;
    if (!isOld && asked?.token !== undefined) {
      if (asked.token !== by && !isSeen(shown)) throw new Error(mustDecideAgain(input));
      return attempt$(asked.token, failures);
    }
    const isWaiting = shown.isReconnecting || asked?.token === undefined;
    if (failures >= (isWaiting ? mostFailures : fewFailures)) throw error;
    return concat(
      wait$(failures).pipe(ignoreElements()),
      defer(() => next$(by, failures + 1, error)),
    );
  };
  return attempt$(token, 0);
};

/** The words for a question that is not the one that was decided. */
export const mustDecideAgain = (seen: unknown): string =>
  seen === undefined
    ? 'The server has asked again. Decide again.'
    : 'The arguments have changed. Decide again.';

/** With a connection, the server says soon whether it asks again. */
const fewFailures = 3;
const mostFailures = 12;

/** A server that has started again does not know the token, and one that is away does not answer. */
const mayPass = (error: unknown): boolean =>
  !(error instanceof Refusal) || error.status === 401 || error.status === 410;
