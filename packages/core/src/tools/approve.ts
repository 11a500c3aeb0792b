import {
  catchError,
  defaultIfEmpty,
  defer,
  from,
  map,
  type MonoTypeOperatorFunction,
  type Observable,
  type ObservableInput,
  of,
  take,
} from 'rxjs';
import { contained } from '../contained.js';
import { messageOf } from '../errors.js';
import { isRecord, isTooDeep } from '../json.js';
import type { ApprovalRequest, Approver, Verdict } from './types.js';

/** What was decided. */
export interface Decision {
  readonly approved: boolean;
  readonly input?: Readonly<Record<string, unknown>>;
  readonly reason?: string;
}

/** Asks an approver. Emits one decision, and never errors: nothing runs because an approver has failed, or is late. */
export const decided$ = (
  approver: boolean | Approver,
  request: ApprovalRequest,
  inTime: MonoTypeOperatorFunction<unknown>,
): Observable<Decision> =>
  typeof approver === 'boolean'
    ? of({ approved: approver })
    : defer(() => verdicts(approver(request))).pipe(
        contained(),
        take(1),
        inTime,
        map(toDecision),
        catchError((error: unknown) => of({ approved: false, reason: messageOf(error) })),
        defaultIfEmpty({ approved: false, reason: 'Nobody has decided on it.' }),
      );

const verdicts = (given: Verdict | ObservableInput<Verdict>): Observable<unknown> =>
  isVerdict(given) ? of(given) : from(given);

const isVerdict = (given: unknown): given is Verdict =>
  typeof given === 'boolean' || (isRecord(given) && 'approved' in given);

/** From outside: all but a plain yes is a no. */
const toDecision = (given: unknown): Decision => {
  if (given === true) return { approved: true };
  if (!isRecord(given) || given['approved'] !== true) {
    const reason = isRecord(given) ? given['reason'] : undefined;
    return { approved: false, ...(typeof reason === 'string' && { reason }) };
  }
  const { input } = given;
  if (input === undefined) return { approved: true };
  return isRecord(input) && !isTooDeep(input)
    ? { approved: true, input }
    : { approved: false, reason: 'The input that was approved is not a plain object.' };
};
