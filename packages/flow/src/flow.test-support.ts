import {
  type Agent,
  type AgentEvent,
  type CallOptions,
  type Input,
  type Reply,
  text,
} from 'millrace';
import { verifyEvents } from 'millrace/testing';
import { filter, lastValueFrom, of, tap, toArray } from 'rxjs';

/** What was heard of a call. */
export interface Played {
  /** The events that say where the flow is: the path below the flow, and the type. */
  readonly log: readonly string[];
  readonly events: readonly AgentEvent[];
  /** What a user interface shows while it comes. */
  readonly streamed: string;
  readonly reply: Reply;
}

const told = ['preCall', 'postCall', 'preActing', 'postActing', 'retrieved', 'error', 'warning'];

/** Calls a flow, and checks the grammar of its events. */
export const play = async (
  agent: Pick<Agent, 'stream$'>,
  input: Input,
  options: CallOptions = {},
): Promise<Played> => {
  const events: AgentEvent[] = [];
  await lastValueFrom(
    agent.stream$(input, options).pipe(
      verifyEvents(),
      tap((event) => events.push(event)),
    ),
  );
  const streamed = await lastValueFrom(
    of(...events).pipe(
      // Deltas only: the reply is emitted at the end if it was not streamed.
      filter(({ type }) => type !== 'postCall'),
      text(),
      toArray(),
    ),
  );
  const last = events.at(-1);
  if (last?.type !== 'postCall') throw new Error('The call has not ended with its reply.');
  const log = events
    .filter(({ type }) => told.includes(type))
    .map(({ agent: [, ...path], type }) => [...path, type].join('/'));
  return { events, log, streamed: streamed.join(''), reply: last.reply };
};

/** Whether something takes less than so much of the processor, of three tries the best. */
export const isQuick = (milliseconds: number, run: () => unknown): boolean =>
  [1, 2, 3].some(() => {
    const usage = process.cpuUsage();
    run();
    const { user, system } = process.cpuUsage(usage);
    return (user + system) / 1_000 < milliseconds;
  });
