import { isMillraceError } from 'millrace';

/** Resolves to the word for how a call has ended: the reason of its reply, or the code of its error. Never rejects. */
export const outcomeOf = (reply: Promise<{ readonly reason: string }>): Promise<string> =>
  reply.then(
    ({ reason }) => reason,
    (error: unknown) => (isMillraceError(error) ? error.code : String(error)),
  );
