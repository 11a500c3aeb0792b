import { defer, EMPTY, lastValueFrom, of, repeat, VirtualTimeScheduler } from 'rxjs';
import type { AgentEvent, Message } from '../../index.js';
import { attach$, createCallStore } from '../index.js';
import { all } from '../stored-calls.test-support.js';
import { callId } from './lives.test-support.js';
import type { Life, World } from './process.test-support.js';

/** What is known of a call when it is over, whichever attempts it took, and when. */
export interface Outcome {
  readonly reply: unknown;
  readonly messages: unknown;
  /** The messages without tool calls and their results. */
  readonly words: unknown;
  readonly memories: unknown;
  readonly effects: readonly string[];
  /** How many requests models have got. */
  readonly asked: number;
  /** The events that are written down, and their numbers. */
  readonly told: readonly string[];
  readonly numbers: readonly number[];
  /** The ids of tool uses of which nobody knew whether they had run. */
  readonly uncertain: readonly string[];
  readonly steps: readonly string[];
}

/** Says how a call has ended, and what it has done. */
export const outcomeOf = async (world: World, life: Life | undefined): Promise<Outcome> => {
  const records = (await all(createCallStore(world.driver).driver.read$(callId))).flat();
  const events = records.filter(({ kind }) => kind === 'event');
  const memories$ = world.longTerm.recall$({ userId: 'ann' }, { text: '', limit: 99 });
  const last = life?.events.at(-1);
  const messages = await lastValueFrom(world.memory('s').load$());
  const failure = life?.error instanceof Error ? String(life.error) : 'It has no end.';
  return {
    reply: plain(last?.type === 'postCall' ? last.reply : failure),
    messages: plain(messages),
    words: plain(messages.filter(isNoToolCall)),
    memories: plain(await lastValueFrom(memories$)),
    effects: world.effects.map(withoutSeed),
    asked: world.asked.length,
    told: events.map(({ text }) => plainText(JSON.parse(text))),
    numbers: events.map(({ seq }) => seq),
    uncertain: events.flatMap(({ name, text }) =>
      name === 'uncertain' ? (/"toolCall":\{[^{]*"id":"([^"]*)"/u.exec(text)?.[1] ?? []) : [],
    ),
    steps: records.flatMap(({ kind, name }) => (kind === 'step' ? [name] : [])),
  };
};

const isNoToolCall = ({ role, content }: Message): boolean =>
  role !== 'tool' && !content.some(({ type }) => type === 'tool_call');

/** What is random in an idempotency key is another in each world. */
export const withoutSeed = (effect: string): string => effect.replace(/\/[0-9a-f]{16}$/u, '');

const plainText = (value: unknown): string =>
  JSON.stringify(value, (key, part: unknown) =>
    ['at', 'seq', 'ms', 'elapsedMs', 'createdAt'].includes(key) ? undefined : part,
  ).replaceAll(/~\d+/gu, '');

const plain = (value: unknown): unknown => JSON.parse(plainText(value));

/** Follows the call from its beginning, through all processes: also behind an error, from which another process may have gone on. */
export const follow = ({
  driver,
}: World): { readonly seen: readonly AgentEvent[]; readonly leave: () => void } => {
  const seen: AgentEvent[] = [];
  const store = createCallStore(driver);
  const options = { waitMs: 1, scheduler: new VirtualTimeScheduler() };
  const follows = defer(() =>
    attach$(store, callId, { ...options, afterSeq: seen.at(-1)?.seq ?? 0 }),
  )
    .pipe(repeat({ delay: () => (seen.at(-1)?.type === 'error' ? of(true) : EMPTY) }))
    .subscribe({
      next: (event) => seen.push(event),
      error: (error: unknown) => {
        throw error;
      },
    });
  return { seen, leave: () => follows.unsubscribe() };
};
