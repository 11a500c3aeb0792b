import type { Observable } from 'rxjs';
import { catchError, concatMap, defaultIfEmpty, defer, from, map, of, take } from 'rxjs';
import { type Call, isOpen, questionOf, type Finding } from '../../seams/call.js';
import { contained } from '../../flow/contained.js';
import { messageOf, misuse } from '../../values/errors.js';
import { defined, isRecord } from '../../values/json.js';
import type { Layer } from '../../seams/layer.js';
import type { Rule } from '../../values/options.js';
import { checkOptions, isFunction, oneOf, wholeNumber } from '../../values/options.js';
import { hasFields, isArrayOf, isNumeric, isOptional, isString } from '../../values/shape.js';
import { cell } from '../../step.js';
import {
  addSources,
  type RetrievalQuery,
  type RetrievedPassage,
  type Retriever,
} from './passages.js';
import { layerPlaces } from '../../seams/layer-places.js';

export interface RetrieveOptions {
  /** Maximum number of passages. Default: 5. */
  readonly limit?: number | undefined;
  /**
   * Placement of the passages, and of recalled memories with them: in the system prompt, or directly before the
   * question, so providers can cache everything before it. Default: `system`.
   */
  readonly placement?: Finding['placement'] | undefined;
  /** Returns the query; an empty one skips retrieval. Default: the question of the call, as text. */
  // The name has no $: it usually returns no Observable.
  // eslint-disable-next-line rxjs-x/finnish
  readonly query?: ((call: Call) => string | Promise<string> | Observable<string>) | undefined;
}

/**
 * Retrieves passages before the loop and shows them to the model with numbers to cite. `reply.sources` lists them in
 * this order, for `citationsIn`. They are never stored. A retriever that fails is a `warning`. Several layers add up.
 */
export const retrieve = (retriever: Retriever, options: RetrieveOptions = {}): Layer => {
  if (!isRecord(retriever) || typeof retriever.retrieve$ !== 'function') {
    throw misuse('retrieve() takes a Retriever: an object with retrieve$(query).');
  }
  checkOptions('retrieve()', options, rules);
  const { limit = 5, placement = 'system', query = questionOf } = defined(options);
  return {
    name: 'retrieve',
    priority: layerPlaces.retrieve,
    call:
      ({ perform, hooks, local }) =>
      (next) =>
      (call) => {
        if (!isOpen(call)) return next(call);
        const report = (message: string): void => hooks.report(0, { type: 'warning', message });
        const found$ = (): Observable<readonly RetrievedPassage[]> =>
          defer(() => toQuery$(query(call))).pipe(
            contained(),
            take(1),
            concatMap((text) =>
              text.trim() === '' ? of([]) : passages$(retriever, { text, limit, report }),
            ),
            defaultIfEmpty([]),
            catchError((error: unknown) => {
              report(
                `Retrieval failed, so the call continues without passages: ${messageOf(error)}`,
              );
              return of([]);
            }),
          );
        const nth = (local(retrievals).count += 1);
        return perform<readonly RetrievedPassage[]>({
          kind: 'retrieve',
          id: nth === 1 ? 'retrieve' : `retrieve/${nth}`,
          input: call.input,
          run: found$,
          cut: () => of([]),
          form: { isWritten: isArrayOf(isPassage) },
        }).pipe(concatMap((passages) => next(addSources(call, passages, placement))));
      },
  };
};

const retrievals = cell('call', () => ({ count: 0 }));

const toQuery$ = (asked: ReturnType<NonNullable<RetrieveOptions['query']>>): Observable<string> =>
  typeof asked === 'string' ? of(asked) : from(asked);

const passages$ = (
  retriever: Retriever,
  query: Required<RetrievalQuery>,
): Observable<readonly RetrievedPassage[]> =>
  defer(() => retriever.retrieve$(query)).pipe(
    contained(),
    take(1),
    map((found) => passagesIn(found).slice(0, query.limit)),
    defaultIfEmpty([]),
  );

const passagesIn = (found: unknown): readonly RetrievedPassage[] => {
  if (Array.isArray(found) && found.every(isPassage)) return found;
  throw new TypeError('a retriever must emit a list of passages');
};

/** Retrievers are foreign code: only valid passages go into a prompt. */
const isPassage = (value: unknown): value is RetrievedPassage =>
  hasFields(value, {
    source: isString,
    text: isString,
    title: isOptional(isString),
    score: isOptional(isNumeric),
    span: isOptional((span) =>
      hasFields(span, { from: isPlace, to: isPlace, line: isOptional(isPlace) }),
    ),
  });

const isPlace = (place: unknown): boolean => Number.isSafeInteger(place);

const rules: Readonly<Record<keyof RetrieveOptions, Rule>> = {
  limit: wholeNumber(1),
  placement: oneOf('system', 'beforeInput'),
  query: isFunction,
};
