import {
  catchError,
  concatMap,
  defaultIfEmpty,
  defer,
  map,
  type Observable,
  of,
  take,
  takeUntil,
} from 'rxjs';
import { contained } from '../contained.js';
import { messageOf, misuse } from '../errors.js';
import { isRecord } from '../json.js';
import { checkOptions, defined, isFunction, oneOf, type Rule, wholeNumber } from '../options.js';
import type { RetrievedPassage, Retriever } from '../retrieval/retriever.js';
import type { CallStage } from './call-stage.js';
import { addSources, type CallState, type ContextPlacement, isOpen } from './call-state.js';
import { textToSelectBy } from './select-tools.js';

/** How a call looks for what it needs to know. */
export interface RetrieveOptions {
  /** Passages at most. Default: 5. */
  readonly limit?: number;
  /**
   * Where the model reads them: in the system prompt, or right before what was asked, so that providers can cache all before it. Default:
   * `system`.
   */
  readonly placement?: ContextPlacement;
  /** What is looked for; nothing, where this is empty. Default: what was asked, as text. */
  readonly query?: (state: CallState) => string;
}

/**
 * Looks for passages before the loop, and shows them to the model with numbers that it can cite; `reply.sources` has them in that order, for
 * `citationsIn`. They are never stored. A retriever that fails is a `warning`, and the call goes on without. Put it behind
 * `loadHistory`: `insertStageAfter(loadHistory, retrieve(retriever))`.
 */
export const retrieve = (retriever: Retriever, options: RetrieveOptions = {}): CallStage => {
  if (!isRecord(retriever) || typeof retriever.retrieve$ !== 'function') {
    throw misuse('retrieve() takes a Retriever: an object with retrieve$(query).');
  }
  checkOptions('retrieve()', options, rules);
  const { limit = 5, placement = 'system', query = textToSelectBy } = defined(options);
  const retrieved: CallStage = ({ step$, hooks, interruption }) =>
    concatMap((state) => {
      const text = isOpen(state) ? query(state).trim() : '';
      if (text === '') return of(state);
      const report = (message: string): void => hooks.report(0, { type: 'warning', message });
      return step$('retrieve', () => passages$(retriever, { text, limit, report })).pipe(
        takeUntil(interruption.cut$),
        defaultIfEmpty([]),
        map((passages) => {
          if (passages.length > 0) hooks.report(0, { type: 'retrieved', passages });
          return addSources(state, passages, placement);
        }),
      );
    });
  return retrieved;
};

const passages$ = (
  retriever: Retriever,
  query: {
    readonly text: string;
    readonly limit: number;
    readonly report: (message: string) => void;
  },
): Observable<readonly RetrievedPassage[]> =>
  defer(() => retriever.retrieve$(query)).pipe(
    contained(),
    take(1),
    map((found) => passagesIn(found).slice(0, query.limit)),
    defaultIfEmpty([]),
    catchError((error: unknown) => {
      query.report(`Nothing could be retrieved, so the call goes on without: ${messageOf(error)}`);
      return of([]);
    }),
  );

const passagesIn = (found: unknown): readonly RetrievedPassage[] => {
  if (Array.isArray(found) && found.every(isPassage)) return found;
  throw new TypeError('a retriever gives a list of passages');
};

const isPassage = (value: unknown): value is RetrievedPassage =>
  isRecord(value) && typeof value['source'] === 'string' && typeof value['text'] === 'string';

const rules: Readonly<Record<keyof RetrieveOptions, Rule>> = {
  limit: wholeNumber(1),
  placement: oneOf('system', 'beforeInput'),
  query: isFunction,
};
