import { catchError, concat, defer, EMPTY, tap } from 'rxjs';
import { isMillraceError } from '../errors.js';
import type { Message } from '../message.js';
import type { Model, ModelContext } from '../model.js';
import { around, checkModel } from '../models/ready.js';
import { countMessages } from './count-request.js';
import { fitMessages } from './fit-messages.js';
import { taskOf } from '../prompt/assemble.js';
import { plainCounter } from './token-counter.js';

/**
 * Sends a request once more, cut to half of its messages, if the provider finds it too long before it says anything: the oldest messages go first, the task
 * stays, and a `warning` reports what was left out. If that is too long as well, or nothing can be left out, the error is `contextTooLong`. The
 * providers' models do this by default.
 */
export const shortenOnOverflow = (model: Model): Model => {
  checkModel('shortenOnOverflow()', model);
  return around(model, (request, context) =>
    defer(() => {
      let hasContent = false;
      return model.stream$(request, context).pipe(
        tap(({ type }) => (hasContent ||= type !== 'usage' && type !== 'restart')),
        catchError((error: unknown) => {
          const isOverflow = isMillraceError(error) && error.code === 'contextTooLong';
          const shorter =
            isOverflow && !hasContent
              ? shortened(model.name, request.messages, context)
              : undefined;
          if (shorter === undefined) throw error;
          const { messages, warning: message } = shorter;
          // Whoever hears of it may leave, and then nothing is sent.
          const warned$ = defer(() => {
            context.report({ type: 'warning', message });
            context.shortened?.(messages);
            return EMPTY;
          });
          return concat(warned$, model.stream$({ ...request, messages }, context));
        }),
      );
    }),
  );
};

/** The messages cut to half of what they were, around those that the call was asked with; nothing if all the rest is needed, or if a message has begun. */
const shortened = (
  name: string,
  messages: readonly Message[],
  { callId = '' }: Pick<ModelContext, 'callId'>,
): { readonly messages: readonly Message[]; readonly warning: string } | undefined => {
  if (messages.at(-1)?.role === 'assistant') return undefined;
  const half = countMessages(plainCounter, messages) / 2;
  const isTask = taskOf(messages, callId);
  const { omitted, omittedTokens, cut, ...fitted } = fitMessages(messages, half, isTask);
  if (omitted + cut === 0) return undefined;
  const without = `without ${omitted} earlier messages (about ${omittedTokens} tokens)`;
  const shorter = cut === 0 ? without : `${without}, and with ${cut} results of tools cut`;
  const warning = `The model '${name}' found the request too long: it is sent again ${shorter}.`;
  return { messages: fitted.messages, warning };
};
