import {
  type Agent,
  type AgentEvent,
  type CallOptions,
  type Demand,
  history,
  type Input,
  type InputMessage,
  type MillraceError,
} from 'millrace';
import { type Observable, tap } from 'rxjs';
import { asError } from './guard.js';

export interface AskedAlone extends Pick<CallOptions, 'request'> {
  readonly input: Input;
  /** The messages before the input. */
  readonly history: readonly InputMessage[];
  readonly metadata: Readonly<Record<string, string>>;
}

/**
 * Runs a call that belongs to no conversation. Reports its error once, when the error event arrives, since the reader may
 * leave at that point.
 */
export const aloneCall$ = (
  agent: Agent,
  callId: string,
  { history: earlier, input, ...options }: AskedAlone & { readonly demand?: Demand },
  report: (error: MillraceError, callId: string) => void,
): Observable<AgentEvent> => {
  const use = earlier.length === 0 ? [] : [history(earlier, { guard: true })];
  let reported: unknown;
  const reportOnce = (error: unknown): void => {
    if (error !== reported) report(asError(error), callId);
    reported = error;
  };
  return agent.stream$(input, { ...options, callId, use }).pipe(
    tap({
      next: (event) => {
        if (event.type === 'error' && event.callId === callId) reportOnce(event.error);
      },
      error: reportOnce,
    }),
  );
};
