import { type ModelChunk, type ModelRequest, textOf } from '../../../index.js';
import type { LongTermMemory, MemoryScope } from '../index.js';
import type { ExtractionEvent } from './extractor.js';
import type { MemoryExtraction } from './extract-memories.js';
import { finish, text } from '../../../testing/index.js';
import { lastValueFrom, type Observable } from 'rxjs';

export const ann: MemoryScope = { userId: 'ann' };
export const bob: MemoryScope = { userId: 'bob' };
export const forAnn = { metadata: { userId: 'ann' } };

/** An answer of the extracting model. */
export const operations = (...list: readonly object[]): readonly ModelChunk[] => [
  text(JSON.stringify({ operations: list })),
  { type: 'usage', usage: { inputTokens: 100, outputTokens: 10 } },
  finish(),
];

export const add = (
  fact: string,
  quote: string,
  more: Readonly<Record<string, unknown>> = {},
): object => ({ op: 'add', text: fact, sources: ['m1'], quote, reason: 'stated', ...more });

export const shownIn = (
  request: ModelRequest | undefined,
): {
  readonly facts: readonly { readonly id: string; readonly text: string }[];
  readonly messages: readonly {
    readonly id: string;
    readonly from: string;
    readonly text: string;
  }[];
} => JSON.parse(textOf(request?.messages[0] ?? { content: [] })) as ReturnType<typeof shownIn>;

export const heldOf = async (
  memory: LongTermMemory,
  scope: MemoryScope = ann,
): Promise<readonly string[]> =>
  (await lastValueFrom(memory.recall$(scope, { text: '', limit: 1_000 }))).map(
    ({ text: it }) => it,
  );

export const done = (work$: Observable<unknown>): Promise<unknown> =>
  lastValueFrom(work$, { defaultValue: undefined });

export const eventsOf = ({ events$ }: MemoryExtraction): readonly ExtractionEvent[] => {
  const events: ExtractionEvent[] = [];
  events$.subscribe((event) => events.push(event));
  return events;
};
