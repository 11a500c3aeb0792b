import { MillraceError } from '@millrace/core';
import type { SessionState } from '@millrace/core/sessions';

/** The state with only the messages before the first of these calls that it has. One that was running may have left none. */
export const stateBefore = (
  state: SessionState,
  calls: readonly string[],
  wasRunning: boolean,
): SessionState => {
  const first = state.messages.findIndex(({ id }) =>
    calls.some((call) => id.startsWith(`${call}/`)),
  );
  if (first === -1 && state.messages.length > 0 && !wasRunning) throw changed(calls.join(' or '));
  return cutAt(state, first);
};

/** The state with only the messages up to the end of a call, and of the calls that brought results for its tools. */
export const stateAfter = (state: SessionState, after: string): SessionState => {
  const last = state.messages.findLastIndex(({ id }) => id.startsWith(`${after}/`));
  if (after !== '' && last === -1) throw changed(after);
  return cutAt(
    state,
    state.messages.findIndex(({ role }, at) => at > last && role === 'user'),
  );
};

const cutAt = (state: SessionState, at: number): SessionState => {
  const messages = at === -1 ? state.messages : state.messages.slice(0, at);
  return { ...state, messages, approvals: [], interrupted: false };
};

export const changed = (call: string): MillraceError =>
  new MillraceError('conflict', `The conversation has no call '${call}' to continue at.`, {
    status: 409,
    userMessage: 'The conversation has changed. Load it again.',
  });
