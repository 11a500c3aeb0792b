import type { CallInfo } from '../call-info.js';
import { type CallOptions, plainOptionsIn } from '../call-options.js';
import { MillraceError } from '../errors.js';
import { isMessage } from '../shape.js';
import { isRecord } from '../json.js';
import type { Message } from '../message.js';
import { hasFields, isString } from '../shape.js';
import { withPlainResults } from '../plain-details.js';
import type { StepForm } from '../step.js';

/** What a call begins with: whoever resumes it needs no more, but what JSON cannot hold. */
export interface CallRecord {
  readonly version: 1;
  /** The name of the agent. */
  readonly agent: string;
  readonly sessionId?: string;
  readonly input: readonly Message[];
  /** What the call says otherwise than its agent, in so far as JSON can hold it. */
  readonly options: CallOptions;
  /** The names of options that JSON cannot hold, and that the call had. */
  readonly given: readonly string[];
  /** The call that it was forked from, and where. */
  readonly forkedFrom?: ForkOrigin;
  /** What was said before a fork that is to load its history anew: it is in no memory of its own. */
  readonly history?: readonly Message[];
  /** The forks that have led to it, the first one first: what they have kept of the calls below. */
  readonly forks?: readonly Fork[];
}

/** What sessions of calls below a fork need to know of it. */
export interface Fork {
  /** The call that was forked, and the new one. */
  readonly from: string;
  readonly to: string;
  /** The calls below that had ended before the point, by what their ids have behind that of the forked call. */
  readonly calls: readonly string[];
}

/** Where a call is forked: before a step, by the id that `steps$` tells, or before all that a turn of its loop has done. */
export type ForkPoint = string | { readonly iteration: number };

/** Where a forked call comes from. */
export interface ForkOrigin {
  readonly callId: string;
  readonly at: ForkPoint;
}

/** The name of the step that is the first of each call. */
export const callStep = 'call';

/** Options that a call cannot do without, and that JSON cannot hold. */
const otherOptions: readonly (keyof CallOptions)[] = [
  'model',
  'tools',
  'output',
  'approve',
  'context',
  'use',
];

/** Writes down what a call begins with. `options` are those that it was made with. */
export const callRecord = (
  { agent, sessionId }: Pick<CallInfo, 'agent' | 'sessionId'>,
  input: readonly Message[],
  options: Readonly<Record<string, unknown>>,
): CallRecord => ({
  version: 1,
  agent: agent.at(-1) ?? '',
  ...(sessionId === undefined ? {} : { sessionId }),
  input: withPlainResults(input),
  options: plainOptionsIn(options),
  given: otherOptions.filter((name) => options[name] !== undefined),
});

/** Tells whether a value is what a call begins with, of a version that is known here. */
export const isCallRecord = (value: unknown): value is CallRecord =>
  isRecord(value) &&
  value['version'] === 1 &&
  typeof value['agent'] === 'string' &&
  ['string', 'undefined'].includes(typeof value['sessionId']) &&
  isListOf(value['input'], isMessage) &&
  isRecord(value['options']) &&
  isListOf(value['given'], isString) &&
  (value['history'] === undefined || isListOf(value['history'], isMessage)) &&
  (value['forks'] === undefined || isListOf(value['forks'], isFork));

const isFork = (value: unknown): value is Fork =>
  hasFields(value, { from: isString, to: isString, calls: (calls) => isListOf(calls, isString) });

const isListOf = (value: unknown, isOne: (item: unknown) => boolean): boolean =>
  Array.isArray(value) && value.every(isOne);

/** The error of whoever cannot read what a call begins with. */
export const unreadableCall = (callId: string): MillraceError =>
  new MillraceError(
    'invalidState',
    `The record of the call '${callId}' is broken, or of a later version.`,
  );

/** Of a call that begins: one that has begun before is another one. */
export const beginning = (callId: string): StepForm<CallRecord> => ({
  isWritten: () => true,
  read: () => {
    throw begunBefore(callId);
  },
});

/** The error of a call whose id another one has. */
export const begunBefore = (callId: string): MillraceError =>
  new MillraceError(
    'conflict',
    `The journal has a call '${callId}' already. Resume it with resume$(agent, '${callId}') of the journal, or use another id.`,
  );

/** Of a call that goes on. */
export const goingOn: StepForm<CallRecord> = { isWritten: isCallRecord };

/** Refuses to resume without what JSON could not hold. What were options in earlier versions are layers now. */
export const assertGiven = (
  callId: string,
  { given }: CallRecord,
  options: Readonly<Record<string, unknown>>,
): void => {
  const missing = given
    .filter((name) => name !== 'toolSelection')
    .map((name) => (name === 'addTools' ? 'use' : name))
    .filter((name) => options[name] === undefined);
  if (missing.length === 0) return;
  throw new MillraceError(
    'invalidResume',
    `The call '${callId}' was made with ${missing.map((name) => `'${name}'`).join(', ')} of its own, which a journal cannot hold. Give the same again: resume$(agent, '${callId}', { ${missing.join(', ')} }).`,
  );
};
