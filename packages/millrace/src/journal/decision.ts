import { defer, mergeMap, type Observable, of, reduce, throwError } from 'rxjs';
import { MillraceError } from '../values/errors.js';
import { canonicalJson, isRecord, parsedJson } from '../values/json.js';
import { records$ } from './call-store.js';
import { checkStored, type StoredRecord, type StoreOfCalls } from './call-store-driver.js';
import { storedEvent } from './record-json.js';
import { toolStepOf } from './steps.js';

/** A tool call that is decided on: its id, and that of its call, which may be below the recorded one. */
export interface DecidedToolCall {
  readonly callId: string;
  readonly toolCallId: string;
}

/** Whether a tool call runs, and with which input; default: its own. */
type Decision = boolean | { readonly approved: boolean; readonly input?: unknown };

/**
 * Checks a decision on a tool call of a recorded call before it is sent, for programs that bring decisions to other processes. Emits
 * whether the tool call has no recorded decision yet, and completes: false if it has the same one already. Errors with
 * `invalidResume` if it has another one, which the error names: the call has continued with that, and with `store`. Cold.
 */
export const isUndecided$ = (
  store: StoreOfCalls,
  rootId: string,
  asked: DecidedToolCall,
  verdict: Decision,
): Observable<boolean> => {
  const { toolCallId } = asked;
  checkStored('isUndecided$()', store, rootId);
  return defer(() => records$(store.driver, rootId)).pipe(
    reduce<StoredRecord, Recorded>(
      ({ intent, shown }, record) => {
        if (record.kind === 'step') return { intent: intentIn(record, asked) ?? intent, shown };
        const input = shownIn(rootId, record, asked);
        return { intent, shown: input === undefined ? shown : [...shown, input] };
      },
      { intent: undefined, shown: [] },
    ),
    mergeMap(({ intent, shown }) => {
      if (intent === undefined) return of(true);
      if (isSameDecision({ ...intent, shown }, verdict)) return of(false);
      return throwError(() => decidedOtherwise(toolCallId, intent));
    }),
  );
};

interface Recorded {
  readonly intent: Intent | undefined;
  readonly shown: readonly unknown[];
}

/** The decision that counts. */
export interface CountingDecision {
  readonly approved: boolean;
  /** The input that was approved, with the edits of the decision. */
  readonly input: unknown;
  /** The inputs that were shown. An approval without an input approves one of these; without any, it is not known what it approves. */
  readonly shown: readonly unknown[];
}

/** Whether a decision says the same as the one that counts. Reasons do not matter: only the first one was read. */
export const isSameDecision = (
  { approved: isApproved, input: counting, shown }: CountingDecision,
  decision: Decision,
): boolean => {
  const { approved, input } =
    typeof decision === 'boolean' ? { approved: decision, input: undefined } : decision;
  if (approved !== isApproved || !approved) return approved === isApproved;
  const approvedInputs = input === undefined ? shown : [input];
  return approvedInputs.length === 0 || approvedInputs.some((one) => isSame(one, counting));
};

const isSame = (one: unknown, other: unknown): boolean =>
  canonicalJson(one) === canonicalJson(other);

interface Intent {
  readonly approved: boolean;
  readonly input: unknown;
}

const intentIn = (
  { name, text }: StoredRecord,
  { callId, toolCallId }: DecidedToolCall,
): Intent | undefined => {
  if (!name.startsWith(`${callId}/`) || toolStepOf(name) === undefined) return undefined;
  const value = parsedJson(text);
  if (!isRecord(value) || !isRecord(value['toolCall'])) return undefined;
  const { id, input } = value['toolCall'];
  return id === toolCallId ? { approved: value['answer'] === undefined, input } : undefined;
};

const shownIn = (
  rootId: string,
  record: StoredRecord,
  { callId, toolCallId }: DecidedToolCall,
): unknown => {
  if (record.name !== 'approvalRequested') return undefined;
  const event = storedEvent(rootId, record);
  return event.type === 'approvalRequested' &&
    event.callId === callId &&
    event.toolCall.id === toolCallId
    ? event.toolCall.input
    : undefined;
};

const decidedOtherwise = (toolCallId: string, { approved, input }: Intent): MillraceError =>
  new MillraceError(
    'invalidResume',
    `The tool call '${toolCallId}' was already decided on: it was ${approved ? `approved with the input ${canonicalJson(input).slice(0, 200)}` : 'refused'}. That decision counts, and the call has continued.`,
    { status: 409, userMessage: 'This request has already been decided.' },
  );
