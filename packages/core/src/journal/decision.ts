import { defer, filter, last, map, mergeMap, type Observable, of, throwError } from 'rxjs';
import { MillraceError } from '../values/errors.js';
import { canonicalJson, isRecord, parsedJson } from '../values/json.js';
import { records$ } from './call-store.js';
import { checkStored, type StoreOfCalls } from './call-store-driver.js';
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
  { callId, toolCallId }: DecidedToolCall,
  verdict: Decision,
): Observable<boolean> => {
  checkStored('isUndecided$()', store, rootId);
  return defer(() => records$(store.driver, rootId, { kind: 'step' })).pipe(
    filter(({ name }) => name.startsWith(`${callId}/`) && toolStepOf(name) !== undefined),
    map(({ text }) => intentIn(parsedJson(text))),
    filter((intent) => intent?.toolCall['id'] === toolCallId),
    last(undefined, undefined),
    mergeMap((intent) => {
      if (intent === undefined) return of(true);
      if (isSame(intent, verdict)) return of(false);
      return throwError(() => decidedOtherwise(toolCallId, intent));
    }),
  );
};

interface Intent {
  readonly toolCall: Readonly<Record<string, unknown>>;
  readonly isApproved: boolean;
}

const intentIn = (value: unknown): Intent | undefined =>
  isRecord(value) && isRecord(value['toolCall'])
    ? { toolCall: value['toolCall'], isApproved: value['answer'] === undefined }
    : undefined;

const isSame = ({ toolCall, isApproved }: Intent, verdict: Decision): boolean => {
  const { approved, input } =
    typeof verdict === 'boolean' ? { approved: verdict, input: undefined } : verdict;
  if (approved !== isApproved) return false;
  return (
    !approved || input === undefined || canonicalJson(input) === canonicalJson(toolCall['input'])
  );
};

const decidedOtherwise = (toolCallId: string, { toolCall, isApproved }: Intent): MillraceError =>
  new MillraceError(
    'invalidResume',
    `The tool call '${toolCallId}' was already decided on: it was ${isApproved ? `approved with the input ${canonicalJson(toolCall['input']).slice(0, 200)}` : 'refused'}. That decision counts, and the call has continued.`,
    { status: 409, userMessage: 'This request has already been decided.' },
  );
