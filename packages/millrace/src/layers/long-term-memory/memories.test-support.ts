import { lastValueFrom, type Observable, of, throwError } from 'rxjs';
import type { AgentEvent, Message, Tool } from '../../index.js';
import { textOf, tool } from '../../index.js';
import { jsonSchema } from '../../schema/index.js';
import type { ScriptedModel } from '../../testing/index.js';
import {
  inProcessLongTermMemory,
  type LongTermMemory,
  type MemoryScope,
  type NewMemory,
} from './index.js';

export const ann: MemoryScope = { userId: 'ann' };
export const bob: MemoryScope = { userId: 'bob' };
export const forAnn = { metadata: { userId: 'ann' } };
export const forBob = { metadata: { userId: 'bob' } };

/** A memory that holds texts of Ann. */
export const remembering = (...texts: readonly string[]): LongTermMemory =>
  holding(ann, ...texts.map((text) => ({ text })));

export const holding = (scope: MemoryScope, ...entries: readonly NewMemory[]): LongTermMemory => {
  const memory = inProcessLongTermMemory({ clock: { now: () => 0 } });
  memory.record$(scope, entries).subscribe();
  return memory;
};

/** What a memory holds of somebody, the newest first. */
export const heldOf = async (
  memory: LongTermMemory,
  scope: MemoryScope = ann,
): Promise<readonly string[]> =>
  (await lastValueFrom(memory.recall$(scope, { text: '', limit: 1_000 }))).map(({ text }) => text);

/** A memory that does something else in some of its operations. */
export const faulty = (fault: Partial<LongTermMemory>): LongTermMemory => ({
  ...inProcessLongTermMemory(),
  ...fault,
});

export const down = (): Observable<never> => throwError(() => new Error('down'));

/** The messages of a request, as texts. */
export const shownTo = (model: ScriptedModel, at = 0): readonly string[] =>
  (model.requests[at]?.messages ?? []).map(told);

const told = (message: Message): string =>
  message.role === 'tool'
    ? message.content.map((result) => textOf(result)).join('\n')
    : textOf(message);

/** All that a model was told in a call, as one text. */
export const everythingTold = (model: ScriptedModel): string => JSON.stringify(model.requests);

export const warningsIn = (events: readonly AgentEvent[]): readonly string[] =>
  events.flatMap((event) => (event.type === 'warning' ? [event.message] : []));

export const look: Tool = tool({
  name: 'look',
  description: 'Looks something up.',
  input: jsonSchema({ type: 'object', properties: { at: { type: 'string' } }, required: ['at'] }),
  run: ({ at }) => {
    if (at === 'nowhere') throw new Error('There is no such place.');
    return of(`Seen at ${at}.`);
  },
});
