import {
  concat,
  defer,
  from,
  map,
  mergeMap,
  type Observable,
  throwError,
  catchError,
  defaultIfEmpty,
  ignoreElements,
  of,
  tap,
} from 'rxjs';
import { messageOf, type MillraceError, toMillraceError } from '../values/errors.js';
import { isRecord, parsedJson } from '../values/json.js';
import { callStep } from './call-record.js';
import { parsedText } from './record-json.js';
import { shortText, textIn } from './call-summary.js';
import type { StoreOfCalls, CallStoreDriver, StoredRecord } from './call-store-driver.js';
import { checkStored, notStored } from './call-store-driver.js';
import { idPartOf } from '../seams/tool-context.js';
import { records$ } from './call-store.js';

/** The kind of a step: start, prepared input, history, model message, decision on a tool call, tool result, reply. */
export type StepKind =
  'call' | 'prepare' | 'open' | 'model' | 'intent' | 'tool' | 'reply' | 'other';

export interface StepSummary {
  /** Its position, for the option `at` of `fork$`: `2`, `2/0/intent`, `2/0`; in a sub-agent: `call_2_0/1`. */
  readonly id: string;
  readonly kind: StepKind;
  readonly iteration?: number;
  /** Its value, shortened to 200 characters. */
  readonly summary: string;
}

/**
 * Emits the recorded steps of a call and its sub-agents, in the order of the loop, and completes. The summary of a
 * damaged step has the reason. Errors with `invalidResume` if there is no such call, and `invalidState` if the store
 * cannot continue. Cold.
 */
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
    return Object.freeze({ ...place, kind, summary: shortText(describe(kind, value)) });
  } catch (error) {
    const summary = shortText(`Cannot be read: ${messageOf(error)}`);
    return Object.freeze({ ...place, kind: kindOf(id, undefined), summary });
  }
};

export const kindOf = (id: string, value: unknown): StepKind => {
  if (id === callStep) return 'call';
  if (toolStepOf(id) !== undefined) return 'intent';
  const last = id.slice(id.lastIndexOf('/') + 1);
  if (last === 'prepare' || last === 'open' || last === 'reply') return last;
  if (!isRecord(value))
    return /\d\/\d+$/u.test(id) ? 'tool' : /^\d+$/u.test(id) ? 'model' : 'other';
  if (isRecord(value['result']) && isRecord(value['toolCall'])) return 'tool';
  return isRecord(value['message']) && isRecord(value['usage']) ? 'model' : 'other';
};

const describe = (kind: StepKind, value: unknown): string => {
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
      return `${useIn(value['toolCall'])}${value['answer'] === undefined ? '' : ', not run'}`;
    case 'tool': {
      const { result } = value;
      return `${useIn(value['toolCall'])}: ${isRecord(result) ? textIn(result['content']) : ''}`;
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
  const uses = blocks
    .filter((block) => isRecord(block) && block['type'] === 'tool_call')
    .map(useIn);
  return [textIn(content), ...uses].filter((part) => part !== '').join(' ');
};

const messagesIn = (messages: unknown): string =>
  Array.isArray(messages) ? messages.map(messageIn).join(' ') : '';

const useIn = (toolCall: unknown): string => {
  const { name, input } = isRecord(toolCall) ? toolCall : {};
  return `${plain(name)}(${plain(input)})`;
};

const plain = (value: unknown): string => {
  if (typeof value === 'string') return value;
  return value === undefined ? '' : JSON.stringify(value);
};

export interface StoredStep {
  readonly id: string;
  readonly record: StoredRecord;
  readonly iteration?: number;
  readonly tool?: string;
}

export interface StoredSteps {
  readonly steps: readonly StoredStep[];
  readonly broken?: MillraceError;
}

export const storedSteps$ = (driver: CallStoreDriver, callId: string): Observable<StoredSteps> =>
  defer(() => {
    const records: StoredRecord[] = [];
    return records$(driver, callId, { kind: 'step' }).pipe(
      tap((record) => records.push(record)),
      ignoreElements(),
      defaultIfEmpty(undefined),
      map((): { readonly broken?: MillraceError } => ({})),
      catchError((cause: unknown) => {
        const broken = toMillraceError(cause);
        if (broken.code !== 'invalidState') throw broken;
        return of({ broken });
      }),
      map((end) => ({ steps: inOrder(callId, records), ...end })),
    );
  });

export const intentOf = (toolStep: string): string => `${toolStep}/intent`;

export const toolStepOf = (id: string): string | undefined =>
  /(?:^|\/)\d+\/\d+\/intent$/u.test(id) ? id.slice(0, -'/intent'.length) : undefined;

interface Placed extends StoredStep {
  readonly place: readonly [turn: number, index: number, position: number];
}

const inOrder = (callId: string, records: readonly StoredRecord[]): readonly StoredStep[] => {
  const prefix = `${callId}/`;
  const steps = records.map((record) => ({
    id: record.name.startsWith(prefix) ? record.name.slice(prefix.length) : record.name,
    record,
  }));
  const begun = new Map<string, number>();
  const tools = new Map<string, Tool>();
  for (const { id, record } of steps) {
    const [, turn, index] = ownTool.exec(id) ?? [];
    if (turn === undefined || index === undefined) continue;
    if (!begun.has(turn)) begun.set(turn, record.position);
    const toolCall = id.endsWith('/intent') ? valueOf(record.text, 'toolCall') : undefined;
    const used = valueIn(toolCall, 'id');
    if (typeof used === 'string') tools.set(idPartOf(used), { turn, index });
  }
  const placed = steps.map(({ id, record }): Placed => {
    const { position } = record;
    const tool = toolOf(id, tools);
    if (tool === undefined) {
      const [, turn] = own.exec(id) ?? [];
      const iteration = turn === undefined ? {} : { iteration: Number(turn) };
      return { id, record, ...iteration, place: [position, 0, position] };
    }
    const { turn, index } = tool;
    return {
      id,
      record,
      iteration: Number(turn),
      tool: `${turn}/${index}`,
      place: [begun.get(turn) ?? position, Number(index), position],
    };
  });
  return placed.sort(byPlace).map(({ place: _, ...step }) => step);
};

interface Tool {
  readonly turn: string;
  readonly index: string;
}

const own = /^(\d+)(?:\/|$)/u;
const ownTool = /^(\d+)\/(\d+)(?:\/intent)?$/u;

const toolOf = (id: string, tools: ReadonlyMap<string, Tool>): Tool | undefined => {
  const [, turn, index] = ownTool.exec(id) ?? [];
  if (turn !== undefined && index !== undefined) return { turn, index };
  if (own.test(id)) return undefined;
  let [place = ''] = id.split('/', 1);
  // A tool call may have several calls: those of its approval, sequential and parallel ones.
  while (!tools.has(place) && place.includes('+')) place = place.slice(0, place.lastIndexOf('+'));
  return tools.get(place);
};

const byPlace = (a: Placed, b: Placed): number =>
  a.place.map((at, level) => at - (b.place[level] ?? 0)).find((ahead) => ahead !== 0) ?? 0;

const valueOf = (text: string, key: string): unknown => valueIn(parsedJson(text), key);

const valueIn = (value: unknown, key: string): unknown =>
  isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined;
