import { MillraceError } from '../../values/errors.js';
import type { SessionSnapshot } from './session-actions.js';
import { callsIn } from './session-state.js';

export const endedCallsIn = ({ rest }: SessionSnapshot): readonly string[] =>
  callsIn(rest).flatMap(({ callId, hasEnded }) => (hasEnded ? [callId] : []));

export const conflictOf = (
  sessionId: string,
  unsaved: readonly string[],
  cause?: MillraceError,
): MillraceError => {
  const calls = unsaved.map((callId) => `'${callId}'`).join(', ');
  const isOne = unsaved.length === 1;
  const why = `another process has saved the session '${sessionId}' meanwhile`;
  return unsaved.length === 0
    ? new MillraceError(
        'conflict',
        `The session is not saved: ${why}. Open it again to continue with its current state.`,
        { cause, userMessage: changedElsewhere },
      )
    : new MillraceError(
        'conflict',
        `The ${isOne ? 'call' : 'calls'} ${calls} ended, but ${why}. Do not repeat ${isOne ? 'it' : 'them'}: open the session again and call resume(), which adds ${isOne ? 'it' : 'them'} to the conversation.`,
        {
          cause,
          userMessage:
            'Your request was completed, but the conversation was changed elsewhere meanwhile. Load it again.',
        },
      );
};

export const changedElsewhere = 'The conversation has changed. Load it again.';
