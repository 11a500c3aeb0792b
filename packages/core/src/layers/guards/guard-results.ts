import { catchError, ignoreElements, map, mergeMap, type ObservableInput, of } from 'rxjs';
import type { CallInfo } from '../../values/reply.js';
import { misuse } from '../../values/errors.js';
import { type Interceptor, on, onCall } from '../../seams/interceptor.js';
import type { ToolResultBlock, ToolUseBlock } from '../../values/message.js';
import { textBlock, textOf } from '../../values/message.js';
import { checkOptions } from '../../values/options.js';
import type { GuardOptions, GuardVerdict } from './guard-input.js';
import { decision$, guardRules, refused, unchecked } from './guard-input.js';

/** What a guard of results looks at. */
export interface GuardedResult {
  /** The text of the result. */
  readonly text: string;
  readonly result: ToolResultBlock;
  /** What the model had asked for. */
  readonly toolUse: ToolUseBlock;
  readonly call: CallInfo;
}

/** How a guard of results is named. */
export type GuardResultsOptions = Pick<GuardOptions, 'name'>;

/**
 * Checks every tool result before the model sees it, errors and late results included: pages and files may contain instructions for the model. The check returns a verdict like that of `guardInput`. A refused result, or one whose check failed, is replaced by an error result `The result was withheld: …`
 * with the reason, and the call continues; its `details` are `{ withheld: error }`. Runs after all `postActing` interceptors of a priority below 1,000. Progress (`actingChunk`) is dropped, because nothing has checked it; `extras` are passed on to other tools.
 */
export const guardResults = (
  check: (asked: GuardedResult) => GuardVerdict | ObservableInput<GuardVerdict>,
  options: GuardResultsOptions = {},
): readonly Interceptor[] => {
  if (typeof check !== 'function') {
    throw misuse(
      `guardResults() takes a function of the result that gives true, false or { allowed, reason }, not ${typeof check}.`,
    );
  }
  checkOptions('guardResults()', options, { name: guardRules.name });
  const { name = 'guardResults' } = options;
  const placed = { name, priority: 1_000 };
  const ofResults = onCall(
    'postActing',
    (call) =>
      mergeMap((event) => {
        const { result, toolUse } = event;
        return decision$(() =>
          check(Object.freeze({ text: textOf(result), result, toolUse, call })),
        ).pipe(
          map((decision) => {
            if (decision.allowed) return event;
            const { reason = `the guard '${name}' refused it` } = decision;
            const error = refused({ name }, decision, 'result');
            return { ...event, result: withheld(result, reason, error) };
          }),
          catchError((cause: unknown) => {
            const error = unchecked({ name }, cause, 'result');
            return of({ ...event, result: withheld(result, 'it could not be checked', error) });
          }),
        );
      }),
    placed,
  );
  return [on('actingChunk', ignoreElements(), placed), ofResults];
};

const withheld = (
  { type, toolUseId, note }: ToolResultBlock,
  why: string,
  error: Error,
): ToolResultBlock => ({
  type,
  toolUseId,
  content: [textBlock(`The result was withheld: ${why.replace(/\.$/, '')}.`)],
  isError: true,
  // It is the call's own word on this use of the tool.
  ...(note === undefined ? {} : { note }),
  details: { withheld: error },
});
