import { layerPlaces } from '../../seams/layer-places.js';
import type { Layer } from '../../seams/layer.js';
import { callProgress } from '../../seams/progress.js';
import {
  errorCodes,
  fatal,
  isFatal,
  MillraceError,
  type MillraceErrorCode,
  misuse,
  revised,
  toMillraceError,
} from '../../values/errors.js';
import { checkOptions, isText } from '../../values/options.js';

type Messages = Readonly<Partial<Record<MillraceErrorCode, string>>>;

/**
 * Replaces the `userMessage` of errors by code, for example in the language of the user. Codes without a message keep theirs, and so do errors with a
 * message of their own, such as those of a guard. A function gets the error; `undefined` keeps its message.
 *
 * @example
 * ```ts
 * const german = userMessages({ rateLimited: 'Gerade ist viel los. Bitte versuchen Sie es gleich noch einmal.' });
 * const agent = createAgent({ model, use: [german] });
 * ```
 */
export const userMessages = (
  messages: Messages | ((error: MillraceError) => string | undefined),
): Layer => {
  const messageFor = typeof messages === 'function' ? messages : byCode(messages);
  return {
    name: 'userMessages',
    priority: layerPlaces.outermost,
    call:
      ({ local }) =>
      (next) =>
      (call) => {
        const progress = local(callProgress);
        const { reported: outer = (error) => error } = progress;
        progress.reported = (error) => outer(withMessage(error, messageFor));
        return next(call);
      },
  };
};

const byCode = (messages: Messages) => {
  const rules = Object.fromEntries(errorCodes.map((code) => [code, isText]));
  checkOptions('userMessages()', messages, rules);
  return ({ code, userMessage }: MillraceError): string | undefined =>
    userMessage === new MillraceError(code, '').userMessage ? messages[code] : undefined;
};

const withMessage = (
  error: MillraceError,
  messageFor: (error: MillraceError) => string | undefined,
): MillraceError => {
  try {
    const userMessage = messageFor(error);
    if (userMessage === undefined) return error;
    if (typeof userMessage !== 'string')
      throw misuse('userMessages(): the function must return a string.');
    const translated = revised(error, { userMessage });
    return isFatal(error) ? fatal(translated) : translated;
  } catch (thrown) {
    return toMillraceError(thrown);
  }
};
