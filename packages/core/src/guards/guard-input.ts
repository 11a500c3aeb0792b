import { catchError, map, mergeMap, type ObservableInput, throwError } from 'rxjs';
import type { CallInfo } from '../call-info.js';
import type { InputMessage } from '../input.js';
import { misuse } from '../errors.js';
import { prepare, type Interceptor } from '../interceptor.js';
import { textOf } from '../message.js';
import { checkOptions, isText, type Rule } from '../options.js';
import { decision$, type GuardVerdict, refused, unchecked } from './verdict.js';

/** What a guard of inputs looks at. */
export interface GuardedInput {
  /** All text that users said in it: of one message as it stands, those of several with a blank line between them. */
  readonly text: string;
  /** All of it, media and messages of other roles too. */
  readonly input: readonly InputMessage[];
  readonly call: CallInfo;
}

/** How a guard is named, and what it tells users. There is no `failOpen`: a guard that fails lets nothing pass. */
export interface GuardOptions {
  /** What events and errors call it. Default: the name of the function that makes it. */
  readonly name?: string;
  /** The `userMessage` of the error: it is shown to users. Default: a sentence that gives no reason. */
  readonly userMessage?: string;
}

/**
 * Asks a check of every input before anything else is done with it: of what a call begins with, and of what is said to a
 * running one later. The check returns, promises or emits one verdict; only `true` or `{ allowed: true }` lets the input pass.
 * Else, and where the check throws, fails, says nothing or anything odd, the call errors with `guardRejected`: no model has
 * been asked, and nothing is stored. An interrupt, a time-out and leaving the call leave an Observable that decides at once.
 *
 * Each input is looked at by itself, without the conversation before it. Guards of one agent are asked in their order.
 */
export const guardInput = (
  check: (asked: GuardedInput) => GuardVerdict | ObservableInput<GuardVerdict>,
  options: GuardOptions = {},
): Interceptor => {
  if (typeof check !== 'function') {
    throw misuse(
      `guardInput() takes a function of the input that gives true, false or { allowed, reason }, not ${typeof check}.`,
    );
  }
  checkOptions('guardInput()', options, guardRules);
  const { name = 'guardInput', userMessage } = options;
  const guard = { name, userMessage };
  return prepare(
    mergeMap((asked) =>
      decision$(() =>
        check(
          Object.freeze({
            text: textsOf(asked.input).join('\n\n'),
            input: asked.input,
            call: asked.call,
          }),
        ),
      ).pipe(
        catchError((cause: unknown) => throwError(() => unchecked(guard, cause, 'input'))),
        map((decision) => {
          if (decision.allowed) return asked;
          throw refused(guard, decision, 'input');
        }),
      ),
    ),
    { name, priority: 0 },
  );
};

export const guardRules: Readonly<Record<keyof GuardOptions, Rule>> = {
  name: isText,
  userMessage: isText,
};

const textsOf = (input: readonly InputMessage[]): readonly string[] =>
  input.filter(({ role }) => role === 'user').map(textOf);

/**
 * The ways in which what users said can be read: as it stands, and, of several messages, also as though nothing was between
 * them. What is taken apart must not pass where the whole would not.
 */
export const readingsOf = ({
  text,
  input,
}: Pick<GuardedInput, 'text' | 'input'>): readonly string[] => {
  const texts = textsOf(input);
  return texts.length > 1 ? [text, texts.join('')] : texts;
};
