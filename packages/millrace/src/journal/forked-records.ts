import { randomId } from '../seams/call-scope.js';
import { MillraceError, misuse, toMillraceError } from '../values/errors.js';
import { frozen, textBlock } from '../values/message.js';
import { isEarlier } from '../seams/input.js';
import { isRecord } from '../values/json.js';
import type { CallRecord, ForkPoint } from './call-record.js';
import { callStep, isCallRecord, nearestSteps, queueStep } from './call-record.js';
import type { NewRecord } from './call-store-driver.js';
import { parsedText, stepText } from './record-json.js';
import { kindOf, type StepKind, type StoredStep, toolStepOf } from './steps.js';
import { toOutput } from '../values/tool-output.js';

export interface ForkedStep {
  readonly id: string;
  /** Its value: plain JSON, frozen, with the ids of the new call. */
  readonly value: unknown;
}

/** An edit of a step: returns its new value, or `undefined` to keep it. */
export interface StepEdit {
  (step: ForkedStep): unknown;
  /** The kinds of steps it applies to. Default: any. Applied to another kind by id, it is a `config` error. */
  readonly kinds?: readonly StepKind[];
}

interface Fork {
  readonly callId: string;
  readonly newId: string;
  readonly at: ForkPoint;
  readonly edit?: StepEdit | Readonly<Record<string, unknown>> | undefined;
  readonly sessionId?: string | undefined;
  readonly open: StoredStep | undefined;
}

export const forkedRecords = (kept: readonly StoredStep[], fork: Fork): readonly NewRecord[] => {
  const { callId, newId, edit = () => undefined } = fork;
  if (!kept.some(({ id }) => id === callStep)) throw noBeginning(callId);
  const editOf = typeof edit === 'function' ? edit : editById(kept, edit);
  return kept.map(({ id, record: { name, text } }) => {
    const value = frozen(read(fork, id, text));
    const edited: unknown = editOf({ id, value }) ?? value;
    const given = inSession(id, edited, fork, callsIn(kept));
    const newName = renamedId(name, callId, newId);
    // Events start with the resume.
    return { kind: 'step', name: newName, seq: 0, text: stepText(newName, given) };
  });
};

const read = ({ callId, newId }: Fork, id: string, text: string): unknown => {
  const what = `The record of the step '${id}' of the call '${callId}'`;
  const value = parsedText(`${what}, which the fork would keep,`, text);
  try {
    return renamed(value, callId, newId);
  } catch (cause) {
    throw toMillraceError(cause, 'invalidState', `${what} cannot be read`);
  }
};

const editById = (
  kept: readonly StoredStep[],
  edits: Readonly<Record<string, unknown>>,
): ((step: ForkedStep) => unknown) => {
  const ids = kept.map(({ id }) => id);
  const unknown = Object.keys(edits).find((id) => !ids.includes(id));
  if (unknown !== undefined) {
    throw new MillraceError(
      'invalidRequest',
      `The fork does not keep a step '${unknown}', so it cannot be edited. It keeps: ${nearestSteps(unknown, ids)}.`,
    );
  }
  return (step) => {
    const edit = Object.hasOwn(edits, step.id) ? edits[step.id] : undefined;
    if (!isEdit(edit)) return edit;
    assertOfKind(step, edit.kinds);
    return edit(step);
  };
};

const isEdit = (edit: unknown): edit is StepEdit => typeof edit === 'function';

/** A fork must not write into the conversation of the original call. */
const inSession = (id: string, value: unknown, fork: Fork, calls: readonly string[]): unknown => {
  const { callId, newId, at, sessionId } = fork;
  if (id === callStep) {
    if (!isCallRecord(value)) throw noBeginning(callId);
    const { sessionId: former, keySeed: _, forks = [], ...begun } = value;
    if (former !== undefined && former === sessionId) throw sameSession(callId, former);
    const forkedFrom = { callId, at };
    return {
      ...((former ?? sessionId) === undefined ? {} : historyOf(fork, begun)),
      ...begun,
      forkedFrom,
      keySeed: `/${randomId()}`,
      forks: [...forks, { from: callId, to: newId, calls }],
      ...(sessionId === undefined ? {} : { sessionId }),
    };
  }
  if (!isRecord(value)) return value;
  // Another session has none of the messages that these name.
  const { after: _, replaces: __, ...unplaced } = value;
  if (id === queueStep) return unplaced;
  if (id !== 'open' || sessionId === undefined) return value;
  // A new session gets the whole history, before the messages of the call.
  return { ...unplaced, late: value['history'] };
};

const historyOf = (fork: Fork, { options }: Pick<CallRecord, 'options'>): object => {
  if (fork.open === undefined || options.history !== undefined) return {};
  const opening = read(fork, 'open', fork.open.record.text);
  return isRecord(opening) ? { history: opening['history'] } : {};
};

const callsIn = (kept: readonly StoredStep[]): readonly string[] =>
  kept.flatMap(({ id }) => (id.endsWith('/reply') ? [id.slice(0, -'/reply'.length)] : []));

const noBeginning = (callId: string): MillraceError =>
  new MillraceError(
    'invalidState',
    `The first record of the call '${callId}', or its edit, is invalid.`,
  );

const sameSession = (callId: string, sessionId: string): MillraceError =>
  new MillraceError(
    'invalidRequest',
    `The call '${callId}' belongs to the session '${sessionId}', whose conversation a fork must not write into. Name another session, or none.`,
  );

const assertOfKind = (
  { id, value }: { readonly id: string; readonly value: unknown },
  kinds: readonly StepKind[] | undefined,
): void => {
  const kind = kindOf(id, value);
  if (kinds !== undefined && !kinds.includes(kind)) throw ofOtherKind(id, kind, kinds);
};

const words: Readonly<Record<StepKind, string>> = {
  call: 'the start of the call',
  prepare: 'the prepared input',
  open: 'the history of the call',
  model: 'an answer of the model',
  intent: 'the decision to run a tool',
  tool: 'the result of a tool',
  reply: 'the reply of a call',
  other: 'a step of another kind',
};

const functions: Readonly<Partial<Record<StepKind, string>>> = {
  call: 'otherQuestion(text)',
  prepare: 'otherQuestion(text)',
  model: 'otherAnswer(text)',
  tool: 'otherResult(returned)',
};

const ofOtherKind = (id: string, kind: StepKind, kinds: readonly StepKind[]): MillraceError => {
  const wanted = kinds.map((it) => words[it]).join(' or ');
  const fitting = functions[kind];
  const run = toolStepOf(id);
  const fix =
    run !== undefined
      ? `The result of the tool is in the step '${run}'`
      : fitting !== undefined
        ? `Edit it with ${fitting}`
        : 'Edit it with a function of your own: (step) => value';
  return misuse(
    `fork$(): the edit of the step '${id}' is one of ${wanted}, and that step is ${words[kind]}. ${fix}.`,
  );
};

const idFields: ReadonlySet<string> = new Set(['messageId', 'callId', 'rootId', 'parentId']);

const foreignFields: ReadonlySet<string> = new Set([
  'details',
  'metadata',
  'output',
  'request',
  'suspended',
]);

export const renamed = (value: unknown, from: string, to: string): unknown => {
  const rename = (id: unknown): unknown => (typeof id === 'string' ? renamedId(id, from, to) : id);
  const walk = (part: unknown): unknown => {
    if (Array.isArray(part)) return part.map(walk);
    if (!isRecord(part) || part['type'] === 'tool_call') return part;
    const isMessage = typeof part['role'] === 'string';
    return Object.fromEntries(
      Object.entries(part).map(([key, field]) => {
        if (idFields.has(key) || (isMessage && key === 'id')) return [key, rename(field)];
        // The `input` of a call is a list of messages; that of a tool call is foreign.
        const isForeign = foreignFields.has(key) || (key === 'input' && !Array.isArray(field));
        return [key, isForeign ? field : walk(field)];
      }),
    );
  };
  return walk(value);
};

export const renamedId = (id: string, from: string, to: string): string =>
  id === from || id.startsWith(`${from}/`) ? `${to}${id.slice(from.length)}` : id;

/** Replaces the result of a tool step (`2/0`) by another return value of the tool. */
export const otherResult = (returned: unknown): StepEdit =>
  ofKinds(['tool'], ({ value }) => {
    if (!isRecord(value) || !isRecord(value['result'])) return undefined;
    const { content, isError } = toOutput(returned);
    const { suspended: _, details: __, ...result } = value['result'];
    return { ...value, result: { ...result, content, isError }, failed: isError };
  });

/** Replaces the message of a model step (`2`) by text without tool calls. */
export const otherAnswer = (text: string): StepEdit =>
  ofKinds(['model'], ({ value }) =>
    isRecord(value) && isRecord(value['message'])
      ? { ...value, message: { ...value['message'], content: [textBlock(text)] } }
      : undefined,
  );

/** Replaces the first text of the question (`call`). Fork before `prepare` or `open`, for interceptors and memory to see it. */
export const otherQuestion = (text: string): StepEdit =>
  ofKinds(['call', 'prepare'], ({ value }) => {
    if (!isRecord(value) || !Array.isArray(value['input'])) return undefined;
    const input: readonly unknown[] = value['input'];
    const at = input.findIndex(
      (message) => isRecord(message) && message['role'] === 'user' && !isEarlier(message),
    );
    return {
      ...value,
      input: input.map((message, index) =>
        index === at && isRecord(message) ? { ...message, content: [textBlock(text)] } : message,
      ),
    };
  });

const ofKinds = (kinds: readonly StepKind[], edit: (step: ForkedStep) => unknown): StepEdit =>
  Object.assign((step: ForkedStep) => edit(step), { kinds });
