import { isRecord, type Rule } from 'millrace/values';
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
import type { ApprovalDesk } from '../approvals/pending-requests.js';
import type { Asking, Part, PartOf } from './part.js';

/** Lets clients decide on approvals. */
export interface ApprovalTokenOptions {
  /**
   * The queue of the tools' approval requests. The stream then repeats each request with the token that decides on it,
   * so every client of the stream may decide. Default: none, the stream has no tokens.
   */
  readonly approvals?: Pick<ApprovalDesk, 'requests$'> | undefined;
}

/** The same, and for streams that end at approvals. */
export interface StreamApprovals extends ApprovalTokenOptions {
  /** Ends the stream at approvals. Default: the stream lasts as long as its call. */
  readonly asking?: Asking;
}

export const approvalTokenRules: Readonly<Record<keyof ApprovalTokenOptions, Rule>> = {
  approvals: [(desk) => isRecord(desk) && isObservable(desk['requests$']), 'an approvalQueue()'],
};

/** Repeats each approval request once it has a token, unless it is decided or its call ends first. */
export const withApprovalTokens = ({
  approvals,
  asking,
}: StreamApprovals): MonoTypeOperatorFunction<Part> =>
  approvals === undefined
    ? identity
    : connect((part$) =>
        part$.pipe(
          mergeMap((part) => {
            if (!isNotice(part, 'approvalRequested')) return of(part);
            if (asking !== undefined && part.by.parentId === undefined) return of(part);
            const over$ = part$.pipe(filter(endsWaitOf(part)), defaultIfEmpty(part));
            return concat(of(part), tokenNotice$(part, approvals).pipe(takeUntil(over$)));
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
  ({ by, notice: { localId } }: NoticePart<'approvalRequested'>) =>
  (part: Part): boolean =>
    part.by.callId === by.callId &&
    (part.type === 'callEnd' ||
      (isNotice(part, 'approvalDecided') && part.notice.localId === localId));

const tokenNotice$ = (
  part: NoticePart<'approvalRequested'>,
  { requests$ }: Pick<ApprovalDesk, 'requests$'>,
): Observable<Part> => {
  const { by, notice } = part;
  return requests$.pipe(
    mergeMap((waiting) =>
      waiting.filter(
        ({ callId, toolCallId }) => callId === by.callId && toolCallId === notice.localId,
      ),
    ),
    take(1),
    map(({ token, expiresAt, mayEdit }) => ({
      ...part,
      notice: { ...notice, approvalToken: { token, expiresAt, ...(mayEdit && { mayEdit }) } },
    })),
  );
};
