import type { MillraceError } from 'millrace';
import {
  fork$,
  otherAnswer,
  otherQuestion,
  otherResult,
  type StepEdit,
  type StepSummary,
  steps$,
} from 'millrace/journal';
import { messageOf } from 'millrace/values';
import { EMPTY, mergeMap, type Observable, toArray } from 'rxjs';
import { refused } from './holds.js';
import type { Hub } from './hub.js';
import type { ForkRequest } from './page/protocol.js';

/** A source of calls: agents of this process, or a store. */
export interface Source {
  readonly hub: Hub;
  readonly kind: 'agents' | 'store';
  readonly title: string;
  readonly holdable: readonly string[];
  /** Reads the log of a call into the hub, unless it is there. */
  open(id: string): void;
  /** Emits the ids of the calls that contain a string. Cold. */
  search$(text: string): Observable<readonly string[]>;
  /** Starts a fork, and emits its id. Cold. */
  fork$(id: string, request: ForkRequest): Observable<string>;
  /** Interrupts a running call. Throws if it cannot. */
  interrupt(id: string, message: string | undefined): void;
}

/** Shows an error on the page, and completes. */
export const noticed =
  (hub: Hub, what: string) =>
  (error: unknown): Observable<never> => {
    hub.notice(`${what}: ${messageOf(error)}`);
    return EMPTY;
  };

type StoreOfCalls = Parameters<typeof fork$>[0];

/** Writes the beginning of a fork, with its edits, and emits its id. Errors as `fork$` of core does. Cold. */
export const forked$ = (
  store: StoreOfCalls,
  callId: string,
  { at, edits = {} }: ForkRequest,
): Observable<string> =>
  steps$(store, callId).pipe(
    toArray(),
    mergeMap((steps) => {
      const edit = Object.entries(edits).map(([id, text]): readonly [string, StepEdit] => [
        id,
        editOf(id, steps)(text),
      ]);
      return fork$(store, callId, { at, edit: Object.fromEntries(edit) });
    }),
  );

const editOf = (id: string, steps: readonly StepSummary[]): ((text: string) => StepEdit) => {
  switch (steps.find((step) => step.id === id)?.kind) {
    case 'call':
      return otherQuestion;
    case 'model':
      return otherAnswer;
    case 'tool':
      return otherResult;
    default:
      throw notEditable(id);
  }
};

const notEditable = (id: string): MillraceError =>
  refused(
    400,
    `The step '${id}' cannot be edited: only the question, messages of the model and results of tools can.`,
  );
