import {
  errorCodes,
  isMillraceError,
  messageOf,
  MillraceError,
  misuse,
} from '../../values/errors.js';
import { defined, isRecord, isTooDeep, parsedJson } from '../../values/json.js';
import { areBlocks } from '../../values/message.js';
import type { ModelChunk, ModelReport, ModelRequest } from '../../models/model.js';
import { isSilence, silences } from '../../models/timeouts.js';
import type { Check } from '../../values/shape.js';
import {
  hasFields,
  isArrayOf,
  isBoolean,
  isMessage,
  isNumeric,
  isOptional,
  isString,
  isToolCall,
  isUsage,
} from '../../values/shape.js';
import { otherFormat } from '../../values/stored-format.js';
import { noUsage } from '../../values/usage.js';

/** A request and the answer of its model, with milliseconds since the request was sent. */
export interface Recording {
  /** The name of the model. */
  readonly model: string;
  readonly request: ModelRequest;
  readonly events: readonly (
    | { readonly ms: number; readonly chunk: ModelChunk }
    | { readonly ms: number; readonly report: ModelReport }
  )[];
  readonly end: End;
}

/** How a recording ends; `cancelled`: its consumer unsubscribed. */
export type End =
  | { readonly ms: number; readonly status: 'completed' | 'cancelled' }
  | { readonly ms: number; readonly status: 'failed'; readonly error: unknown };

/** A recording as JSON, but for its request. */
export interface StoredAnswer {
  readonly events: readonly unknown[];
  readonly end: unknown;
}

const version = 1;

// ---------------------------------------------------------------- writing

/** An answer as JSON: `[ms, text]` for a delta of text, `[ms, chunk]` or `[ms, { report }]` for others. */
export const storedAnswer = ({ events, end }: Pick<Recording, 'events' | 'end'>): StoredAnswer => ({
  events: events.map((event) =>
    'chunk' in event
      ? [event.ms, event.chunk.type === 'text' ? event.chunk.text : event.chunk]
      : [event.ms, { report: storedReport(event.report) }],
  ),
  end: [end.ms, end.status === 'failed' ? { error: storedError(end.error) } : end.status],
});

const storedReport = (report: ModelReport): object =>
  'error' in report ? { ...report, error: storedError(report.error) } : report;

const storedError = (error: unknown): object => {
  if (!isMillraceError(error)) return { message: messageOf(error) };
  const { code, message, retryable, userMessage } = error;
  const { partial, usage, retryAfterMs, status, requestId, over } = error;
  const usual = new MillraceError(code, message);
  return defined({
    code,
    message,
    retryable: retryable === usual.retryable ? undefined : retryable,
    userMessage: userMessage === usual.userMessage ? undefined : userMessage,
    ...{ status, retryAfterMs, requestId, over, usage, partial },
    isSilence: isSilence(error) || undefined,
  });
};

/** Whether the stored answer can be read again. */
export const isReadable = ({ events, end }: StoredAnswer): boolean =>
  events.every((event) => eventOf(event) !== undefined) && endOf(end) !== undefined;

/** The text of a file is its head, the texts of its recordings, separated by `between`, and its tail. */
export const fileText = {
  head: `{\n  "version": ${version},\n  "recordings": [\n`,
  between: ',\n',
  tail: '\n  ]\n}\n',
} as const;

export const recordingText = (recording: object): string => `    ${pretty(recording, '    ')}`;

const width = 100;

/** JSON as Prettier writes it: an object or array that fits has one line. */
const pretty = (value: unknown, indent = '', used = indent.length): string => {
  const line = inOneLine(value);
  if (typeof value !== 'object' || value === null || used + line.length < width) return line;
  const inner = `${indent}  `;
  if (Array.isArray(value)) {
    const items = value.map((item) => inner + pretty(item, inner));
    return `[\n${items.join(',\n')}\n${indent}]`;
  }
  const fields = Object.entries(value).map(([key, item]) => {
    const name = `${inner}${JSON.stringify(key)}: `;
    return name + pretty(item, inner, name.length);
  });
  return `{\n${fields.join(',\n')}\n${indent}}`;
};

const inOneLine = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(inOneLine).join(', ')}]`;
  if (!isRecord(value)) return JSON.stringify(value);
  const fields = Object.entries(value).map(
    ([key, it]) => `${JSON.stringify(key)}: ${inOneLine(it)}`,
  );
  return fields.length === 0 ? '{}' : `{ ${fields.join(', ')} }`;
};

// ---------------------------------------------------------------- reading

/** Files with more messages, counted for each request, are refused: a short one could fill the memory. */
const maxMessages = 1_000_000;

/** Reads the text of a cassette; throws `config` if it is damaged, or something else. */
export const readRecordings = (label: string, text: string): readonly Recording[] => {
  const refuse = (why: string): MillraceError =>
    misuse(
      `The cassette '${label}' cannot be read: ${why}. Restore the file, or delete it to record again.`,
    );
  const value = parsedJson(text);
  if (value === undefined) throw refuse('it is not JSON');
  if (isTooDeep(value)) throw refuse('it is nested too deeply');
  if (!isRecord(value) || !Array.isArray(value['recordings'])) {
    throw refuse('it is not a cassette, which has a version and a list of recordings');
  }
  if (value['version'] !== version) throw refuse(`it ${otherFormat(value['version'], version)}`);
  const recordings: Recording[] = [];
  let messages = 0;
  value['recordings'].forEach((item: unknown, index) => {
    const problem = (what: string): MillraceError =>
      refuse(`${what} of recording ${index + 1} is invalid`);
    if (!isRecord(item)) throw refuse(`recording ${index + 1} is not an object`);
    const { model, request: stored, events, end } = item;
    if (typeof model !== 'string') throw problem(`'model'`);
    const request = requestOf(stored, recordings);
    if (request === undefined) throw problem(`'request'`);
    messages += request.messages.length;
    if (messages > maxMessages) throw refuse('it is too large');
    if (!Array.isArray(events)) throw problem(`'events'`);
    const read = events.map((event: unknown, at) => {
      const known = eventOf(event);
      if (known === undefined) throw problem(`event ${at + 1}`);
      return known;
    });
    const ended = endOf(end);
    if (ended === undefined) throw problem(`'end'`);
    recordings.push({ model, request, events: read, end: ended });
  });
  return recordings;
};

const requestOf = (stored: unknown, before: readonly Recording[]): ModelRequest | undefined => {
  if (!isRecord(stored) || !isArrayOf(isMessage)(stored['messages'])) return undefined;
  if (!Object.hasOwn(stored, 'extends')) return isRequest(stored) ? stored : undefined;
  const base = before[Number(stored['extends'])]?.request;
  const added = { messages: stored['messages'] };
  return base === undefined || !isRequest(added)
    ? undefined
    : { ...base, messages: [...base.messages, ...added.messages] };
};

export const isRequest = (value: unknown): value is ModelRequest =>
  hasFields(value, {
    messages: isArrayOf(isMessage),
    system: isOptional(isString),
    tools: isOptional(
      isArrayOf((it) =>
        hasFields(it, { name: isString, description: isString, inputSchema: isRecord }),
      ),
    ),
  });

/** A pair of milliseconds, as many as a timer supports, and something. */
const isTimed = (value: unknown): value is readonly [ms: number, what: unknown] =>
  Array.isArray(value) &&
  value.length === 2 &&
  typeof value[0] === 'number' &&
  value[0] >= 0 &&
  value[0] < 2 ** 31;

const eventOf = (event: unknown): Recording['events'][number] | undefined => {
  if (!isTimed(event)) return undefined;
  const [ms, what] = event;
  if (typeof what === 'string') return { ms, chunk: { type: 'text', text: what } };
  if (isChunk(what)) return { ms, chunk: what };
  const report = isRecord(what) ? reportOf(what['report']) : undefined;
  return report === undefined ? undefined : { ms, report };
};

const endOf = (end: unknown): End | undefined => {
  if (!isTimed(end)) return undefined;
  const [ms, what] = end;
  if (what === 'completed' || what === 'cancelled') return { ms, status: what };
  const error = isRecord(what) ? errorOf(what['error']) : undefined;
  return error === undefined ? undefined : { ms, status: 'failed', error };
};

const isAny: Check = () => true;
const isText = isOptional(isString);
const isFlag = isOptional(isBoolean);

const chunkFields: Readonly<Record<ModelChunk['type'], Readonly<Record<string, Check>>>> = {
  text: { text: isString, vendorData: isAny },
  textStart: { separate: isFlag, phase: isText, vendorData: isAny },
  citation: { citation: isRecord },
  thinking: { text: isString, signature: isText, redacted: isFlag, vendorData: isAny },
  toolCall: {
    index: isOptional(isNumeric),
    id: isText,
    name: isText,
    json: isText,
    input: isAny,
    refusal: isText,
    vendorData: isAny,
  },
  block: { block: (value) => areBlocks([value]) },
  facts: { facts: isRecord },
  usage: { usage: (value) => isRecord(value) && isUsage({ ...noUsage, ...value }) },
  restart: { why: isString, isSameRequest: isFlag },
  malformed: {
    feedback: isString,
    why: isText,
    written: isText,
    isAnswer: isFlag,
    isThought: isFlag,
  },
  finish: {
    finish: (value) =>
      ['stop', 'length', 'refusal', 'filtered', 'pause'].some((it) => it === value),
  },
};

const reportFields: Readonly<Record<ModelReport['type'], Readonly<Record<string, Check>>>> = {
  modelRetry: {
    model: isString,
    attempt: isNumeric,
    attempts: isNumeric,
    waitMs: isNumeric,
    error: isMillraceError,
  },
  modelWaiting: { model: isString, waitedMs: isNumeric, on: isOptional(isString) },
  modelFallback: { from: isString, to: isString, error: isMillraceError },
  repaired: { before: isString, after: isString, toolCall: isOptional(isToolCall) },
  queued: { why: isString, ahead: isNumeric },
  admitted: { why: isString, waitedMs: isNumeric },
  warning: { message: isString },
};

const isOneOf = (
  value: unknown,
  kinds: Readonly<Record<string, Readonly<Record<string, Check>>>>,
) => {
  const type = isRecord(value) ? value['type'] : undefined;
  const fields = typeof type === 'string' && Object.hasOwn(kinds, type) ? kinds[type] : undefined;
  return fields !== undefined && hasFields(value, fields);
};

const isChunk = (value: unknown): value is ModelChunk => isOneOf(value, chunkFields);
const isReport = (value: unknown): value is ModelReport => isOneOf(value, reportFields);

const reportOf = (stored: unknown): ModelReport | undefined => {
  const report =
    isRecord(stored) && Object.hasOwn(stored, 'error')
      ? { ...stored, error: errorOf(stored['error']) }
      : stored;
  return isReport(report) ? report : undefined;
};

const isDetails = (value: unknown): value is ConstructorParameters<typeof MillraceError>[2] =>
  hasFields(value, {
    retryable: isFlag,
    userMessage: isText,
    partial: isText,
    usage: isOptional(isUsage),
    retryAfterMs: isOptional(isNumeric),
    status: isOptional(isNumeric),
    requestId: isText,
    over: isOptional(isNumeric),
  });

const errorOf = (stored: unknown): Error | undefined => {
  if (!isRecord(stored) || typeof stored['message'] !== 'string') return undefined;
  const { code: given, message, cause: _cause, isSilence: isSilent, ...details } = stored;
  if (given === undefined) return new Error(message);
  const code = errorCodes.find((it) => it === given);
  if (code === undefined || !isDetails(details)) return undefined;
  const error = new MillraceError(code, message, details);
  if (isSilent === true) silences.add(error);
  return error;
};
