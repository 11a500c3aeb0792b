import { concatMap, firstValueFrom, lastValueFrom, type Observable, toArray } from 'rxjs';
import type { AgentEvent } from '../index.js';
import {
  type CallStoreDriver,
  createCallStore,
  inProcessCalls,
  type Journal,
  type NewRecord,
  journal,
} from './index.js';
import type { ResumeOptions } from './resume-all.js';

/** A journal on a driver. */
export const journalIn = (
  driver: CallStoreDriver,
  options?: Pick<ResumeOptions, 'onUncertain'>,
): Journal => journal(createCallStore(driver), options);

/** A store with these records of calls, each written by whom it belonged to. */
export const storeWith = async (
  calls: Readonly<Record<string, readonly NewRecord[]>>,
  now: () => number = () => 0,
) => {
  const driver = inProcessCalls(now);
  for (const [callId, records] of Object.entries(calls)) await write(driver, callId, records);
  return createCallStore(driver);
};

/** Writes records of a call behind those that are there. */
export const write = async (
  driver: CallStoreDriver,
  callId: string,
  records: readonly NewRecord[],
): Promise<void> => {
  const written$ = driver.claim$(callId).pipe(concatMap((claim) => claim.append$(records)));
  await firstValueFrom(written$, { defaultValue: undefined });
};

/** The record of an event of the call `c`, or of one below it. */
export const event = (seq: number, more: Partial<Record<string, unknown>> = {}): NewRecord => {
  const { type = 'warning', ...rest } = more;
  const own = { type, rootId: 'c', callId: 'c', agent: ['agent'], iteration: 0, seq, at: seq };
  return {
    kind: 'event',
    name: String(type),
    seq,
    text: JSON.stringify({ ...own, message: String(seq), ...rest }),
  };
};

/** The record of a step. */
export const step = (name: string, value: unknown): NewRecord => ({
  kind: 'step',
  name,
  seq: 0,
  text: typeof value === 'string' ? value : JSON.stringify(value),
});

/** What a call begins with. */
export const begun = (
  callId: string,
  text = 'Hello.',
  more: Readonly<Record<string, unknown>> = {},
) =>
  step(`${callId}/call`, {
    version: 1,
    keySeed: '/0123456789abcdef',
    agent: 'agent',
    input: [{ id: `${callId}/input/0`, role: 'user', content: [{ type: 'text', text }] }],
    options: {},
    given: [],
    ...more,
  });

export const all = <T>(source$: Observable<T>): Promise<readonly T[]> =>
  lastValueFrom(source$.pipe(toArray()));

export const seqs = (events: readonly AgentEvent[]): readonly number[] =>
  events.map(({ seq }) => seq);
