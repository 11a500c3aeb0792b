import { catchError, ignoreElements, map, mergeMap, type ObservableInput, of } from 'rxjs';
import type { CallInfo } from '../../values/reply.js';
import { misuse } from '../../values/errors.js';
import { type Interceptor, on, onCall } from '../../seams/interceptor.js';
import type { ToolResultBlock, ToolCallBlock } from '../../values/message.js';
import { textBlock, textOf } from '../../values/message.js';
import { checkOptions } from '../../values/options.js';
import type { GuardOptions, GuardVerdict } from './guard-input.js';
import { decision$, guardRules, rejection, failedCheck } from './guard-input.js';

export interface GuardedResult {
  readonly text: string;
  readonly result: ToolResultBlock;
  readonly toolCall: ToolCallBlock;
  readonly call: CallInfo;
}

export type GuardResultsOptions = Pick<GuardOptions, 'name'>;

/**
 * Checks every tool result before the model sees it, including errors and late results: pages and files may contain
 * instructions. The check returns a verdict like that of `guardInput`. If it rejects or fails, the model gets the error
 * result `The result was withheld: …` with the reason, and the call continues; `details` are `{ withheld: error }`. Anything else than
 * one verdict fails the call with `config`.
 * Runs after all `postActing` interceptors with a priority below 1,000. Drops progress (`actingChunk`), as it is
 * unchecked; passes `extras` on to other tools.
 */
export const guardResults = (
  check: (asked: GuardedResult) => GuardVerdict | ObservableInput<GuardVerdict>,
  options: GuardResultsOptions = {},
): readonly Interceptor[] => {
  if (typeof check !== 'function') {
    throw misuse(
      `guardResults() takes a function that returns true, false or { allowed, reason }, not ${typeof check}.`,
    );
  }
  checkOptions('guardResults()', options, { name: guardRules.name });
  const { name = 'guardResults' } = options;
  const placement = { name, priority: 1_000 };
  const checkResults = onCall(
    'postActing',
    (call) =>
      mergeMap((event) => {
        const { result, toolCall } = event;
        return decision$(() =>
          check(Object.freeze({ text: textOf(result), result, toolCall, call })),
        ).pipe(
          map((decision) => {
            if (decision.allowed) return event;
            const { reason = `the guard '${name}' rejected it` } = decision;
            const error = rejection({ name }, decision, 'result');
            return { ...event, result: withheld(result, reason, error) };
          }),
          catchError((cause: unknown) => {
            const error = failedCheck({ name }, cause, 'result');
            if (error.code === 'config') throw error;
            return of({ ...event, result: withheld(result, 'it could not be checked', error) });
          }),
        );
      }),
    placement,
  );
  return [on('actingChunk', ignoreElements(), placement), checkResults];
};

const withheld = (
  { type, toolCallId, note }: ToolResultBlock,
  why: string,
  error: Error,
): ToolResultBlock => ({
  type,
  toolCallId,
  content: [textBlock(`The result was withheld: ${why.replace(/\.$/, '')}.`)],
  isError: true,
  // The note comes from the call itself.
  ...(note === undefined ? {} : { note }),
  details: { withheld: error },
});
