import type { CallInfo } from '../values/reply.js';
import { historyIn } from '../memories/conversation.js';
import { type CallOptions, plainOptionsIn } from '../call/call-options.js';
import { MillraceError } from '../values/errors.js';
import type { Check } from '../values/shape.js';
import { hasFields, isArrayOf, isMessage, isOptional, isString } from '../values/shape.js';
import type { InputMessage } from '../seams/input.js';
import { isRecord, parsedJson } from '../values/json.js';
import { checkFormat } from '../values/stored-format.js';
import type { Layer } from '../seams/layer.js';
import { interruptLayer } from '../seams/steps.js';
import { readUse } from '../seams/read-use.js';
import { type Message, withPlainResults } from '../values/message.js';
import type { Place } from '../values/message-tree.js';
import type { NewRecord } from './call-store-driver.js';
import type { StepForm } from './step-forms.js';

export interface CallRecord {
  readonly version: typeof callVersion;
  readonly agent: string;
  readonly sessionId?: string;
  /** The random part of its idempotency keys. */
  readonly keySeed: string;
  readonly input: readonly Message[];
  readonly options: CallOptions & RecordedOptions;
  readonly given: readonly string[];
  readonly forkedFrom?: ForkOrigin;
  readonly history?: readonly Message[];
  readonly forks?: readonly Fork[];
}

interface RecordedOptions {
  readonly history?: readonly InputMessage[] | undefined;
}

export interface Fork {
  readonly from: string;
  readonly to: string;
  readonly calls: readonly string[];
}

/** The point of a fork: the id of a step from `steps$`, or the start of a turn. */
export type ForkPoint = string | { readonly iteration: number };

export interface ForkOrigin {
  readonly callId: string;
  readonly at: ForkPoint;
}

export const callStep = 'call';

/** The version of the format of recorded calls, the only one that is read. */
const callVersion = 1;

/** Options that JSON cannot express, which a resume needs again. */
const otherOptions: readonly (keyof CallOptions)[] = ['model', 'tools', 'context', 'use'];

export const callRecord = (
  { agent, sessionId }: Pick<CallInfo, 'agent' | 'sessionId'>,
  keySeed: string,
  input: readonly Message[],
  options: Readonly<Record<string, unknown>>,
): CallRecord => {
  const history = historyIn(layersIn(options));
  return {
    version: callVersion,
    keySeed,
    agent: agent.at(-1) ?? '',
    ...(sessionId === undefined ? {} : { sessionId }),
    input: withPlainResults(input),
    options: { ...plainOptionsIn(options), ...(history && { history }) },
    given: givenIn(options),
  };
};

const layersIn = ({ use }: Readonly<Record<string, unknown>>): readonly Layer[] =>
  readUse('The call', use);

const lasting: readonly string[] = ['approval', 'output'];

/** Layers that a resume does not need: interrupts, and the history, which is recorded. */
const spare: readonly string[] = [interruptLayer.name, 'interruptOn', 'history', 'conversation'];

const givenIn = (options: Readonly<Record<string, unknown>>): readonly string[] => {
  const layers = layersIn(options).map(({ name }) => name);
  const needed = layers.filter((name) => !spare.includes(name));
  const isNeeded = layers.length === 0 || needed.length > 0;
  return [
    ...otherOptions.filter((name) => options[name] !== undefined && (name !== 'use' || isNeeded)),
    ...lasting.filter((name) => layers.includes(name)),
  ];
};

export const isCallRecord = (value: unknown): value is CallRecord =>
  hasFields(value, {
    version: (version) => version === callVersion,
    agent: isString,
    sessionId: isOptional(isString),
    keySeed: isString,
    input: isArrayOf(isMessage),
    options: isRecord,
    given: isArrayOf(isString),
    history: isOptional(isArrayOf(isMessage)),
    forks: isOptional(isArrayOf(isFork)),
  });

const isFork: Check = (value) =>
  hasFields(value, { from: isString, to: isString, calls: isArrayOf(isString) });

/** Returns the first record of a call. Throws `invalidState` if it has another format version, or is damaged. */
export const readCallRecord = (callId: string, value: unknown): CallRecord => {
  if (isCallRecord(value)) return value;
  checkVersion(callId, value);
  throw damagedCall(callId);
};

/** Throws `invalidState` if a record is the first one of a call in another format version. */
export const checkFirstRecord = (
  callId: string,
  { name, text }: Pick<NewRecord, 'name' | 'text'>,
): void => {
  if (name !== `${callId}/${callStep}` || text.startsWith(currentVersion)) return;
  checkVersion(callId, parsedJson(text));
};

/** Saves parsing it: the input may be long. */
const currentVersion = JSON.stringify({ version: callVersion }).replace('}', ',');

const checkVersion = (callId: string, value: unknown): void => {
  const { version = callVersion } = isRecord(value) ? value : {};
  checkFormat(`The call '${callId}'`, version, callVersion);
};

export const damagedCall = (callId: string): MillraceError =>
  new MillraceError('invalidState', `The first record of the call '${callId}' is damaged.`);

export const beginning = (callId: string): StepForm<CallRecord> => ({
  isWritten: () => true,
  read: () => {
    throw alreadyBegun(callId);
  },
});

export const alreadyBegun = (callId: string): MillraceError =>
  new MillraceError(
    'conflict',
    `The journal already has a call '${callId}'. Resume it with resume$(agent, '${callId}') of the journal, or use another id.`,
  );

export const resumption: StepForm<CallRecord> = { isWritten: isCallRecord };

export const assertGiven = (
  callId: string,
  { given }: CallRecord,
  options: Readonly<Record<string, unknown>>,
): void => {
  const now = givenIn(options);
  const missing = given.filter((name) => !now.includes(name));
  if (missing.length === 0) return;
  const isLayer = (name: string): boolean => lasting.includes(name);
  const names = missing
    .filter((name) => name !== 'use' || !missing.some(isLayer))
    .map((name) => (isLayer(name) ? `use: [${name}(…)]` : name));
  throw new MillraceError(
    'invalidResume',
    `The call '${callId}' was made with its own ${names.map((name) => `'${name}'`).join(', ')}, which a journal cannot store. Pass the same again: resume$(agent, '${callId}', { ${names.join(', ')} }).`,
  );
};

export const interruptStep = 'interrupt';

/** The session id in the first record of a call, if these records include it, for drivers that list a session's calls. */
export const sessionIn = (
  callId: string,
  records: readonly (Pick<NewRecord, 'name' | 'text'> | undefined)[],
): string | undefined => {
  const begins = records.find((record) => record?.name === `${callId}/${callStep}`);
  const begun = begins === undefined ? begins : parsedJson(begins.text);
  const { sessionId } = isRecord(begun) ? begun : {};
  return typeof sessionId === 'string' ? sessionId : undefined;
};

export interface QueueRecord extends Place {
  readonly as: 'seated' | 'superseded' | 'interrupted';
  readonly message?: string;
  /** The call that asked with this input first. */
  readonly asks?: string;
  /** Set if it differs from the default of the session. */
  readonly onSuspended?: 'cancel' | 'refuse';
}

export const queueStep = 'seat';

export const isQueueRecord = (written: unknown): written is QueueRecord =>
  hasFields(written, {
    as: (as) => as === 'seated' || as === 'superseded' || as === 'interrupted',
    message: isOptional(isString),
    after: isOptional((after) => after === null || isString(after)),
    replaces: isOptional(isString),
    asks: isOptional(isString),
    onSuspended: isOptional((mode) => mode === 'cancel' || mode === 'refuse'),
  });

export const queueForm: StepForm<QueueRecord> = { isWritten: isQueueRecord };

export const callOfStep = (name: string, calls: Pick<ReadonlySet<string>, 'has'>): string => {
  let at = name.lastIndexOf('/');
  while (at > 0 && !calls.has(name.slice(0, at))) at = name.lastIndexOf('/', at - 1);
  return name.slice(0, Math.max(0, at));
};

export const callBegunBy = (name: string): string | undefined => {
  const at = name.lastIndexOf('/');
  return at > 0 && firstSteps.has(name.slice(at + 1)) ? name.slice(0, at) : undefined;
};

const firstSteps: ReadonlySet<string> = new Set([
  callStep,
  queueStep,
  interruptStep,
  'prepare',
  'open',
]);

export const nearestSteps = (wanted: string, ids: readonly string[]): string => {
  const near = ids
    .map((id, index) => ({ id, index, shared: sharedStart(wanted, id) }))
    .sort((a, b) => b.shared - a.shared || b.index - a.index)
    .slice(0, mostNamed)
    .sort((a, b) => a.index - b.index)
    .map(({ id }) => id)
    .join(', ');
  const others = ids.length - mostNamed;
  return others > 0 ? `${near}, and ${others} more` : near;
};

const mostNamed = 10;

const sharedStart = (a: string, b: string): number => {
  let length = 0;
  while (length < a.length && a[length] === b[length]) length += 1;
  return length;
};
