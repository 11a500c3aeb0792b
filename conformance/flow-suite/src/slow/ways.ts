import { type Agent, type AgentEvent, coalesceMap, toReadableStream } from 'millrace';
import { concatMap, lastValueFrom, type Observable } from 'rxjs';

/** Has each event of one call taken, and waits for that before the next. */
export type Way = (agent: Agent, take: (event: AgentEvent) => Promise<void>) => Promise<void>;

/** Ways in which a slow consumer can take the events of a call. */
export const ways = {
  'for await': async (agent, take) => {
    for await (const event of agent.stream(question)) await take(event);
  },
  ReadableStream: async (agent, take) => {
    const reader = toReadableStream((demand) => agent.stream$(question, { demand })).getReader();
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      await take(read.value);
    }
  },
  coalesceMap: (agent, take) => done(agent.stream$(question).pipe(coalesceMap(take))),
  'plain concatMap': (agent, take) => done(agent.stream$(question).pipe(concatMap(take))),
} satisfies Readonly<Record<string, Way>>;

/** The name of a way. */
export type WayName = keyof typeof ways;

export const wayNames: readonly WayName[] = [
  'for await',
  'ReadableStream',
  'coalesceMap',
  'plain concatMap',
];

const question = 'Go on.';

const done = (taken$: Observable<void>): Promise<void> =>
  lastValueFrom(taken$, { defaultValue: undefined });
