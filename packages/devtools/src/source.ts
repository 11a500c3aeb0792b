import { type MillraceError, textBlock } from 'millrace';
import {
  fork$,
  otherQuestion,
  otherResult,
  type StepEdit,
  type StepSummary,
  steps$,
} from 'millrace/journal';
import { isRecord, messageOf } from 'millrace/values';
import { EMPTY, mergeMap, type Observable, toArray } from 'rxjs';
import { refused } from './holds.js';
import type { Hub } from './hub.js';
import type { ForkRequest, Found } from './page/protocol.js';

/** A source of calls: agents of this process, or a store. */
export interface Source {
  readonly hub: Hub;
  readonly kind: 'agents' | 'store';
  readonly title: string;
  readonly holdable: readonly string[];
  /** How many calls the list has at first, if it has not all. */
  readonly pageSize?: number;
  /** Reads the log of a call into the hub, unless it is there. Completes. Errors if there is no such call. Cold. */
  open$(id: string): Observable<never>;
  /** Emits the calls that contain a string, of those that were last written until a time. Cold. */
  search$(text: string, until?: number): Observable<Found>;
  /** Lists older calls. Emits whether there may be more. Cold. */
  readonly older$: Observable<boolean>;
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

/** The user in the metadata of a call, as the layers of long-term memory read it. */
export const userOf = (
  metadata: Readonly<Record<string, string>>,
): { readonly userId?: string } => {
  const userId = Object.hasOwn(metadata, 'userId') ? metadata['userId'] : undefined;
  return typeof userId === 'string' ? { userId } : {};
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
      return otherText;
    case 'tool':
      return otherResult;
    default:
      throw notEditable(id);
  }
};

/** Replaces the text of a message. Its tool calls and other parts stay, so their results still belong to it. */
export const otherText =
  (text: string): StepEdit =>
  ({ value }) => {
    if (!isRecord(value) || !isRecord(value['message'])) return undefined;
    const { content } = value['message'];
    const blocks: readonly unknown[] = Array.isArray(content) ? content : [];
    const isText = (block: unknown): boolean => isRecord(block) && block['type'] === 'text';
    const own = text === '' ? [] : [textBlock(text)];
    const at = blocks.findIndex(
      (block) => isText(block) || (isRecord(block) && block['type'] === 'tool_call'),
    );
    const before = at === -1 ? blocks : blocks.slice(0, at);
    const after = at === -1 ? [] : blocks.slice(at).filter((block) => !isText(block));
    return { ...value, message: { ...value['message'], content: [...before, ...own, ...after] } };
  };

const notEditable = (id: string): MillraceError =>
  refused(
    400,
    `The step '${id}' cannot be edited: only the question, messages of the model and results of tools can.`,
  );
