import type { Observable, ObservableInput } from 'rxjs';
import { catchError, map, mergeMap, of, throwError } from 'rxjs';
import type { CallInfo } from '../../values/reply.js';
import { misuse } from '../../values/errors.js';
import type { EventOf } from '../../events.js';
import { type Interceptor, onCall } from '../../seams/interceptor.js';
import { type AssistantMessage, textOf, toolCallsOf } from '../../values/message.js';
import { checkOptions, isText, oneOf, type Rule, wholeNumber } from '../../values/options.js';
import type { Decision, GuardOptions, GuardVerdict } from './guard-input.js';
import { decision$, guardRules, rejection, failedCheck } from './guard-input.js';

export interface GuardedAnswer {
  readonly text: string;
  readonly content: AssistantMessage['content'];
  readonly call: CallInfo;
}

export interface GuardAnswerOptions extends GuardOptions {
  /** `error` fails the call with `guardRejected`, `again` asks the model again. Default: `error`. */
  readonly onReject?: 'error' | 'again' | undefined;
  /** The message to the model when it is asked again. Default: that its answer was not accepted, with the reason. */
  readonly feedback?: string | undefined;
  /** With `again`: maximum number of rejected answers in a row before the call errors. Default: 2. */
  readonly retries?: number | undefined;
}

/**
 * Checks every complete answer; the check returns a verdict like that of `guardInput`. The text has been streamed by
 * then: user interfaces remove it on `error` or `messageDiscarded`. Use `guardOutput` to check while streaming. A
 * rejected answer is neither stored nor in the reply. The check sees all replies (answers, closing answers, final tool
 * results, the partial text of an interrupted call) after all interceptors with a priority below 1,000, but no text
 * next to tool calls. Asking again counts as an iteration. If the check errors, so does the call; anything else than one
 * verdict is a `config` error.
 */
export const guardAnswer = (
  check: (asked: GuardedAnswer) => GuardVerdict | ObservableInput<GuardVerdict>,
  options: GuardAnswerOptions = {},
): readonly Interceptor[] => {
  if (typeof check !== 'function') {
    throw misuse(
      `guardAnswer() takes a function that returns true, false or { allowed, reason }, not ${typeof check}.`,
    );
  }
  checkOptions('guardAnswer()', options, rules);
  const { name = 'guardAnswer', userMessage, onReject = 'error', feedback, retries = 2 } = options;
  const guard = { name, userMessage };
  const placement = { name, priority: 1_000 };
  const accepted = new WeakMap<CallInfo, AssistantMessage['content']>();
  const verdictOn$ = (call: CallInfo, content: AssistantMessage['content']): Observable<Decision> =>
    decision$(() => check(Object.freeze({ text: textOf({ content }), content, call }))).pipe(
      catchError((cause: unknown) => throwError(() => failedCheck(guard, cause, 'answer'))),
    );
  const checkReply = onCall(
    'postCall',
    (call) =>
      mergeMap((event) => {
        const { content } = event.reply;
        // A suspended call has no answer yet.
        if (event.reply.reason === 'suspended' || accepted.get(call) === content) return of(event);
        return verdictOn$(call, content).pipe(
          map((decision) => {
            if (decision.allowed) return event;
            throw rejection(guard, decision, 'answer');
          }),
        );
      }),
    placement,
  );
  if (onReject === 'error') return [checkReply];
  const checkMessage = onCall(
    'postReasoning',
    (call) => {
      let refusals = 0;
      const applied = (event: EventOf<'postReasoning'>, decision: Decision) => {
        if (decision.allowed) {
          refusals = 0;
          accepted.set(call, event.message.content);
          return event;
        }
        refusals += 1;
        if (refusals > retries) throw rejection(guard, decision, 'answer');
        return { ...event, again: feedback ?? feedbackOn(decision) };
      };
      return mergeMap((event) => {
        const { message, stop = false, again: other } = event;
        if (stop || other !== undefined || toolCallsOf(message).length > 0) return of(event);
        return verdictOn$(call, message.content).pipe(map((decision) => applied(event, decision)));
      });
    },
    placement,
  );
  return [checkMessage, checkReply];
};

const feedbackOn = ({ reason }: Decision): string =>
  `Your answer was not accepted${reason === undefined ? '' : `: ${reason.replace(/\.$/, '')}`}. Answer differently.`;

const rules: Readonly<Record<keyof GuardAnswerOptions, Rule>> = {
  ...guardRules,
  onReject: oneOf('error', 'again'),
  feedback: isText,
  retries: wholeNumber(0),
};
