import { type CallOptions, type Input, MillraceError, toolResults } from 'millrace';
import {
  checkFormat,
  checkOptions,
  isObject,
  isRecord,
  isText,
  type Rule,
  wholeNumber,
} from 'millrace/values';

/** The options of a call that JSON can express. Others belong to the workers: see `callOptions` of `work$`. */
export type PlainCallOptions = Pick<CallOptions, 'request' | 'limits' | 'metadata'>;

/** All that a worker needs to run a call: the input of its workflow. */
export interface Order {
  readonly callId: string;
  readonly agent: string;
  readonly sessionId?: string | undefined;
  readonly input: Input;
  readonly options?: PlainCallOptions | undefined;
  /** How long a suspended call waits for its results, in milliseconds. */
  readonly answerWithinMs?: number | undefined;
  /** The suspended call whose time is over: this order only starts the call that continues it. */
  readonly expires?: {
    readonly callId: string;
    readonly sessionId: string;
    readonly toolCallIds: readonly string[];
  };
}

export interface StartOptions extends PlainCallOptions {
  /** The id of the call. Default: random. */
  readonly callId?: string | undefined;
  /**
   * The session, which belongs to this agent: use others for other agents. Its calls run one by one, in the order in which they were
   * started, on any worker. Default: none.
   */
  readonly sessionId?: string | undefined;
  /** Starts the call after so many milliseconds, also if all processes are restarted meanwhile. Default: 0. */
  readonly delayMs?: number | undefined;
  /**
   * How long the call, if it is suspended, waits for `answer$`, in milliseconds. Then it continues, and the model is
   * informed that there was no answer. Default: without end.
   */
  readonly answerWithinMs?: number | undefined;
  /**
   * Only workers of this version run the call, unless its session has unfinished calls: then it gets their version. Default: that of the
   * worker that started last.
   */
  readonly version?: string | undefined;
}

const rules: Readonly<Record<keyof StartOptions, Rule>> = {
  callId: isText,
  sessionId: isText,
  delayMs: wholeNumber(0),
  answerWithinMs: wholeNumber(0),
  version: isText,
  request: isObject,
  limits: isObject,
  metadata: isObject,
};

const ofWorkers: readonly string[] = ['model', 'tools', 'context', 'use', 'demand', 'scheduler'];

export const checkStart = (options: object): void => {
  const other = Object.keys(options).find((name) => ofWorkers.includes(name));
  if (other !== undefined) {
    throw new MillraceError(
      'config',
      `start$() cannot send '${other}' to another process. Give it to the agent, or return it from 'callOptions' of work$().`,
    );
  }
  checkOptions('start$()', options, rules);
};

/** An id that the indexes of DBOS can hold. */
export const checkId = (what: string, id: unknown): void => {
  const isId = typeof id === 'string' && id.trim() !== '' && !id.includes('\0');
  if (isId && Buffer.byteLength(id) <= maxId) return;
  throw new MillraceError(
    'config',
    `${what} needs an id: a string of 1 to ${maxId} bytes, not only spaces.`,
  );
};

/** The ids of answers are not free. */
export const checkNewId = (callId: string): void => {
  checkId('A call', callId);
  if (!/~(?:\d{1,9}|expiry)$/.test(callId)) return;
  throw new MillraceError(
    'config',
    `The id '${callId}' is that of an answer to another call. Use an id that does not end with '~' and a number.`,
  );
};

const maxId = 500;

/** The order as JSON, or an error that names what JSON cannot express. */
export const plainOrder = (order: Order): Order => {
  const plain = asJson(order);
  if (isOrder(plain)) return plain;
  throw new MillraceError('invalidRequest', 'The input of a call must be JSON, and not empty.');
};

const asJson = (value: unknown): unknown => {
  try {
    return JSON.parse(JSON.stringify(value));
  } catch (cause) {
    throw new MillraceError('config', 'The input and the options of a call must be JSON.', {
      cause,
    });
  }
};

/** The version of the format of stored orders, the only one that is read. */
const orderFormat = 1;

export const storedOrder = (order: Order): Order => Object.assign({ format: orderFormat }, order);

/** Reads a stored order. Throws `invalidState` if it has another format version, or is damaged. */
export const readOrder = (callId: string, value: unknown): Order => {
  const what = `The start of the call '${callId}'`;
  if (isRecord(value)) {
    const { format, ...order } = value;
    checkFormat(what, format, orderFormat);
    if (isOrder(order)) return order;
  }
  throw new MillraceError('invalidState', `${what} is damaged.`);
};

const isOrder = (value: unknown): value is Order =>
  isRecord(value) &&
  typeof value['callId'] === 'string' &&
  typeof value['agent'] === 'string' &&
  ['string', 'undefined'].includes(typeof value['sessionId']) &&
  ['number', 'undefined'].includes(typeof value['answerWithinMs']) &&
  ['string', 'object'].includes(typeof value['input']) &&
  value['input'] !== null &&
  (value['options'] === undefined || isRecord(value['options'])) &&
  (value['expires'] === undefined || isExpiry(value['expires']));

const isExpiry = (value: unknown): boolean =>
  isRecord(value) &&
  typeof value['callId'] === 'string' &&
  typeof value['sessionId'] === 'string' &&
  Array.isArray(value['toolCallIds']);

/** The order that continues a suspended call with the results that it waits for. */
export const continued = (
  { callId, expires: _, ...order }: Order,
  results: Readonly<Record<string, unknown>>,
): Order => ({ ...order, callId: nextCallId(callId), input: toolResults(results) });

/** The id of the order that ends the wait of a suspended call. */
export const expiryOf = (callId: string): string => `${callId}~expiry`;

/** The id of the call that continues a suspended one: `order-7` becomes `order-7~2`, and that `order-7~3`. */
export const nextCallId = (callId: string): string => {
  const [, base = callId, part = '1'] = /^(.*)~(\d{1,9})$/s.exec(callId) ?? [];
  return `${base}~${Number(part) + 1}`;
};

export interface StartTime {
  readonly delayMs?: number | undefined;
  readonly version?: string | undefined;
}

/** Versions of DBOS are unique over all names. Workers without a version share one. */
export const versionOf = (name: string, version = ''): string => `${name}/${version}`;

export const queueOf = (name: string, agent: string): string => `${name}/${agent}`;
