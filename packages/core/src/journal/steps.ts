import { concat, defer, from, map, mergeMap, type Observable, throwError } from 'rxjs';
import { messageOf } from '../errors.js';
import { isRecord } from '../json.js';
import { callStep } from './call-record.js';
import { parsedText } from './record-json.js';
import { shortText, textIn } from './call-summary.js';
import { checkStored, notStored, type StoreOfCalls } from './stored-call.js';
import { type StoredStep, storedSteps$, toolStepOf } from './stored-steps.js';

/** What a step has done: begun the call, prepared its input, loaded its history, asked the model, decided on a tool, run it, made the reply. */
export type StepKind =
  'call' | 'prepare' | 'open' | 'model' | 'intent' | 'tool' | 'reply' | 'other';

/** A step that is written down, as people are shown it. */
export interface StepSummary {
  /** Its place, which `fork$` takes as `at`: such as `2`, `2/0/intent` and `2/0`; in a call below, behind the id of the tool use: `call_2_0/1`. */
  readonly id: string;
  readonly kind: StepKind;
  /** Which turn of the outermost loop it is a part of. */
  readonly iteration?: number;
  /** What it gave, in at most 200 characters. */
  readonly summary: string;
}

/** Emits the recorded steps of a call and of those below it, in the order of its loop, and completes. An unreadable step says why in its summary. Errors with `invalidResume` if there is no such call, and `invalidState` if the store cannot read on. Cold. */
export const steps$ = (store: StoreOfCalls, callId: string): Observable<StepSummary> => {
  checkStored('steps$()', store, callId);
  return defer(() => storedSteps$(store.driver, callId)).pipe(
    mergeMap(({ steps, broken }) => {
      const why = broken ?? (steps.length === 0 ? notStored(callId) : undefined);
      const summaries$ = from(steps).pipe(map(summaryOf));
      return why === undefined
        ? summaries$
        : concat(
            summaries$,
            throwError(() => why),
          );
    }),
  );
};

const summaryOf = ({ id, iteration, record }: StoredStep): StepSummary => {
  const place = iteration === undefined ? { id } : { id, iteration };
  try {
    const value = parsedText('It', record.text);
    const kind = kindOf(id, value);
    return Object.freeze({ ...place, kind, summary: shortText(said(kind, value)) });
  } catch (error) {
    const summary = shortText(`Cannot be read: ${messageOf(error)}`);
    return Object.freeze({ ...place, kind: kindOf(id, undefined), summary });
  }
};

/** By its last word, and where it is a number by what it gave: that of a call below may end with two. */
export const kindOf = (id: string, value: unknown): StepKind => {
  if (id === callStep) return 'call';
  if (toolStepOf(id) !== undefined) return 'intent';
  const last = id.slice(id.lastIndexOf('/') + 1);
  if (last === 'prepare' || last === 'open' || last === 'reply') return last;
  if (!isRecord(value))
    return /\d\/\d+$/u.test(id) ? 'tool' : /^\d+$/u.test(id) ? 'model' : 'other';
  if (isRecord(value['result']) && isRecord(value['toolUse'])) return 'tool';
  return isRecord(value['message']) && isRecord(value['usage']) ? 'model' : 'other';
};

const said = (kind: StepKind, value: unknown): string => {
  if (!isRecord(value)) return plain(value);
  switch (kind) {
    case 'call':
    case 'prepare':
      return messagesIn(value['input']);
    case 'open': {
      const { history } = value;
      return Array.isArray(history) ? `${history.length} messages of history` : '';
    }
    case 'model':
      return messageIn(value['message']);
    case 'intent':
      return `${useIn(value['toolUse'])}${value['answer'] === undefined ? '' : ', not run'}`;
    case 'tool': {
      const { result } = value;
      return `${useIn(value['toolUse'])}: ${isRecord(result) ? textIn(result['content']) : ''}`;
    }
    case 'reply':
      return `${plain(value['reason'])}: ${messageIn(value)}`;
    case 'other':
      return typeof value['text'] === 'string' ? value['text'] : plain(value);
  }
};

const messageIn = (message: unknown): string => {
  const { content } = isRecord(message) ? message : {};
  const blocks: readonly unknown[] = Array.isArray(content) ? content : [];
  const uses = blocks.filter((block) => isRecord(block) && block['type'] === 'tool_use').map(useIn);
  return [textIn(content), ...uses].filter((part) => part !== '').join(' ');
};

const messagesIn = (messages: unknown): string =>
  Array.isArray(messages) ? messages.map(messageIn).join(' ') : '';

const useIn = (toolUse: unknown): string => {
  const { name, input } = isRecord(toolUse) ? toolUse : {};
  return `${plain(name)}(${plain(input)})`;
};

const plain = (value: unknown): string => {
  if (typeof value === 'string') return value;
  return value === undefined ? '' : JSON.stringify(value);
};
