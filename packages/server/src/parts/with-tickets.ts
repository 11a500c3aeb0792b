import { isRecord, type Rule } from '@millrace/core/adapter';
import {
  concat,
  connect,
  defaultIfEmpty,
  filter,
  identity,
  isObservable,
  map,
  mergeMap,
  type MonoTypeOperatorFunction,
  type Observable,
  of,
  take,
  takeUntil,
} from 'rxjs';
import type { ApprovalDesk } from '../approvals/approval-desk.js';
import type { Part, PartOf } from './part.js';

/** Whether a reader may decide on approvals. */
export interface TicketOptions {
  /**
   * The desk that the tools ask. A request for approval is then told once more, with the token that decides on it: whoever reads the stream
   * may decide. Default: none, and no tokens.
   */
  readonly approvals?: Pick<ApprovalDesk, 'requests$'>;
}

/** What these options may be. */
export const ticketRules: Readonly<Record<keyof TicketOptions, Rule>> = {
  approvals: [
    (desk) => isRecord(desk) && isObservable(desk['requests$']),
    'what approvalDesk() makes',
  ],
};

/**
 * Tells each request for approval once more when the desk has a token for it, unless it is decided before, or its call ends.
 * Whatever else there is passes by at once.
 */
export const withTickets = ({ approvals }: TicketOptions): MonoTypeOperatorFunction<Part> =>
  approvals === undefined
    ? identity
    : connect((part$) =>
        part$.pipe(
          mergeMap((part) => {
            if (!isNotice(part, 'approvalRequested')) return of(part);
            const over$ = part$.pipe(filter(endsWaitOf(part)), defaultIfEmpty(part));
            return concat(of(part), ticketed$(part, approvals).pipe(takeUntil(over$)));
          }),
        ),
      );

type NoticeName = PartOf<'notice'>['notice']['name'];
type NoticePart<Name extends NoticeName> = PartOf<'notice'> & {
  readonly notice: { readonly name: Name };
};

const isNotice = <Name extends NoticeName>(part: Part, name: Name): part is NoticePart<Name> =>
  part.type === 'notice' && part.notice.name === name;

const endsWaitOf =
  ({ by, notice: { toolUseId } }: NoticePart<'approvalRequested'>) =>
  (part: Part): boolean =>
    part.by.callId === by.callId &&
    (part.type === 'callEnd' ||
      (isNotice(part, 'approvalDecided') && part.notice.toolUseId === toolUseId));

const ticketed$ = (
  part: NoticePart<'approvalRequested'>,
  { requests$ }: Pick<ApprovalDesk, 'requests$'>,
): Observable<Part> => {
  const { by, notice } = part;
  return requests$.pipe(
    mergeMap((waiting) =>
      waiting.filter(
        ({ callId, toolUseId }) => callId === by.callId && toolUseId === notice.toolUseId,
      ),
    ),
    take(1),
    map(({ token, expiresAt }) => ({
      ...part,
      notice: { ...notice, ticket: { token, expiresAt } },
    })),
  );
};
