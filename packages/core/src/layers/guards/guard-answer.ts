import type { Observable, ObservableInput } from 'rxjs';
import { catchError, map, mergeMap, of, throwError } from 'rxjs';
import type { CallInfo } from '../../values/reply.js';
import { misuse } from '../../values/errors.js';
import type { EventOf } from '../../events.js';
import { type Interceptor, onCall } from '../../seams/interceptor.js';
import { type AssistantMessage, textOf, toolUsesOf } from '../../values/message.js';
import { checkOptions, isText, oneOf, type Rule, wholeNumber } from '../../values/options.js';
import type { Decision, GuardOptions, GuardVerdict } from './guard-input.js';
import { decision$, guardRules, refused, unchecked } from './guard-input.js';

/** What a guard of answers looks at. */
export interface GuardedAnswer {
  /** The text of the answer, whole. */
  readonly text: string;
  readonly content: AssistantMessage['content'];
  readonly call: CallInfo;
}

/** What becomes of an answer that is refused. */
export interface GuardAnswerOptions extends GuardOptions {
  /** The call errors with `guardRejected`, or the model is asked again. Default: `error`. */
  readonly onReject?: 'error' | 'again';
  /** What the model is told when it is asked again. Default: that its answer was not accepted, and the reason. */
  readonly feedback?: string;
  /** Answers in a row that may be refused before the call errors, with `again`. Default: 2. */
  readonly retries?: number;
}

/**
 * Checks every answer when it is complete; the check returns a verdict like that of `guardInput`. The text has been streamed by then, so user interfaces take it back on `error` or `messageDiscarded`; use `guardOutput` to check while streaming. A refused answer is neither stored nor in the reply.
 * It sees everything that a call would reply with (answers, closing answers, final tool results, the partial text of an interrupted call), after all interceptors of a priority below 1,000, and no text beside tool calls. If the model answered without tools, it is asked again, which counts as an iteration. If the check errors, so does the call.
 */
export const guardAnswer = (
  check: (asked: GuardedAnswer) => GuardVerdict | ObservableInput<GuardVerdict>,
  options: GuardAnswerOptions = {},
): readonly Interceptor[] => {
  if (typeof check !== 'function') {
    throw misuse(
      `guardAnswer() takes a function of the answer that gives true, false or { allowed, reason }, not ${typeof check}.`,
    );
  }
  checkOptions('guardAnswer()', options, rules);
  const { name = 'guardAnswer', userMessage, onReject = 'error', feedback, retries = 2 } = options;
  const guard = { name, userMessage };
  const placed = { name, priority: 1_000 };
  /** An answer that was accepted when it was written is not asked of twice. */
  const accepted = new WeakMap<CallInfo, AssistantMessage['content']>();
  const asked$ = (call: CallInfo, content: AssistantMessage['content']): Observable<Decision> =>
    decision$(() => check(Object.freeze({ text: textOf({ content }), content, call }))).pipe(
      catchError((cause: unknown) => throwError(() => unchecked(guard, cause, 'answer'))),
    );
  const last = onCall(
    'postCall',
    (call) =>
      mergeMap((event) => {
        const { content } = event.reply;
        // What waits for a tool is no answer yet.
        if (event.reply.reason === 'suspended' || accepted.get(call) === content) return of(event);
        return asked$(call, content).pipe(
          map((decision) => {
            if (decision.allowed) return event;
            throw refused(guard, decision, 'answer');
          }),
        );
      }),
    placed,
  );
  if (onReject === 'error') return [last];
  const again = onCall(
    'postReasoning',
    (call) => {
      let refusals = 0;
      const judged = (event: EventOf<'postReasoning'>, decision: Decision) => {
        if (decision.allowed) {
          refusals = 0;
          accepted.set(call, event.message.content);
          return event;
        }
        refusals += 1;
        if (refusals > retries) throw refused(guard, decision, 'answer');
        return { ...event, again: feedback ?? feedbackOn(decision) };
      };
      return mergeMap((event) => {
        const { message, stop = false, again: other } = event;
        if (stop || other !== undefined || toolUsesOf(message).length > 0) return of(event);
        return asked$(call, message.content).pipe(map((decision) => judged(event, decision)));
      });
    },
    placed,
  );
  return [again, last];
};

const feedbackOn = ({ reason }: Decision): string =>
  `Your answer was not accepted${reason === undefined ? '' : `: ${reason.replace(/\.$/, '')}`}. Answer in another way.`;

const rules: Readonly<Record<keyof GuardAnswerOptions, Rule>> = {
  ...guardRules,
  onReject: oneOf('error', 'again'),
  feedback: isText,
  retries: wholeNumber(0),
};
