import {
  type AgentEvent,
  createAgent,
  type Message,
  only,
  tool,
  type Tool,
  toolCallsOf,
} from 'millrace';
import { sessions, type Session } from 'millrace/sessions';
import { openai } from '@millrace/openai';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { firstValueFrom, type OperatorFunction, skip } from 'rxjs';
import { now } from '../one-clock.js';
import type { AnswerServer } from '../server/start-answer-server.js';
import { ends, type Stop, stops } from '../stops.js';

/** Where a call is when it is stopped. */
export type Place = 'stream' | 'tool';

/** What came of one stop. Times are in milliseconds from the stop. */
export interface Stopped {
  /** Until the server saw the socket close; absent where no response was under way. */
  readonly closedMs: number | undefined;
  /** Until whoever made the call heard of its end. */
  readonly settledMs: number;
  /** What is not as it must be. It resolves when the tool has returned, too. */
  readonly wrongs: Promise<readonly string[]>;
}

/**
 * Stops a call in one way and at one place, then goes on with its session. The tool takes so many milliseconds, and
 * ignores its signal.
 */
export const measureStop = async (
  server: AnswerServer,
  stop: Stop,
  place: Place,
  toolMs: number,
): Promise<Stopped> => {
  const vendor = server.play({ type: place === 'stream' ? 'drip' : 'toolCall' });
  const deaf = deafTool(toolMs);
  const model = openai('loopback', { apiKey: 'test', baseURL: vendor.url });
  const session = sessions(createAgent({ model, tools: [deaf.tool] })).open('one');
  const middle = firstValueFrom(session.events$.pipe(middleOf(place)));
  const call = stops[stop](session);
  const settled = call.settled.then((end) => ({ end, at: now() }));
  await middle;
  await nextTurn();
  const stoppedAt = now();
  call.stop();
  const { end, at } = await settled;
  const [cut] = await vendor.seen();
  const next = await session.call('And now?');
  const kept = await messagesOf(session);
  const asked = kept
    .flatMap((it) => (it.role === 'assistant' ? toolCallsOf(it) : []))
    .map(({ id }) => id);
  const answered = kept
    .flatMap((it) => (it.role === 'tool' ? it.content : []))
    .map(({ toolCallId }) => toolCallId);
  const wrongs = [
    ...(end === ends[stop] ? [] : [`the call ended as ${end}`]),
    ...(cut?.isWhole === (place === 'tool') ? [] : ['the call was not where it should be']),
    ...(next.reason === 'answer' ? [] : [`the next call ended as ${next.reason}`]),
    ...(asked.join() === answered.join()
      ? []
      : [`the tool calls ${asked.join()} have the results ${answered.join()}`]),
  ];
  return {
    closedMs: place === 'stream' && cut !== undefined ? cut.closedAt - stoppedAt : undefined,
    settledMs: at - stoppedAt,
    wrongs: deaf.hasReturned().then(async () => {
      const isSame = isDeepStrictEqual(await messagesOf(session), kept);
      return isSame ? wrongs : [...wrongs, 'what came late was stored'];
    }),
  };
};

/** A tool that hears nothing, and a way to wait until all its runs have ended. */
const deafTool = (ms: number): { readonly tool: Tool; hasReturned(): Promise<unknown> } => {
  const runs: Promise<string>[] = [];
  return {
    tool: tool({
      name: 'wait',
      description: 'Waits, whatever happens.',
      run: () => {
        const run = sleep(ms, 'Too late.');
        runs.push(run);
        return run;
      },
    }),
    hasReturned: () => Promise.all(runs).then(nextTurn),
  };
};

/** Emits when a call is at its place: behind some words of a stream, or in its tool. */
const middleOf = (place: Place): OperatorFunction<AgentEvent, AgentEvent> =>
  place === 'stream'
    ? (event$) => event$.pipe(only('reasoningChunk'), skip(4))
    : (event$) => event$.pipe(only('preActing'));

const messagesOf = ({ memory }: Session): Promise<readonly Message[]> =>
  firstValueFrom(memory.load$());
