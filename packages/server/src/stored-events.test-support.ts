import { expect, it } from '@jest/globals';
import { type AgentEvent, isMillraceError } from 'millrace';
import { type CallStore, journal, replay$ } from 'millrace/journal';
import {
  catchError,
  concat,
  EMPTY,
  from,
  lastValueFrom,
  map,
  type Observable,
  type OperatorFunction,
  reduce,
  throwError,
} from 'rxjs';
import { createMasks } from './masks.js';
import { toChunks } from './openai/chat-completions.js';
import { createResponseEncoder } from './openai/response-encoder.js';
import { encoded } from './openai/responses.js';
import { toAgUi, toServerSentEvents, toUiMessageStream } from './index.js';
import { scenarios } from './scenarios.test-support.js';

type Encoder = OperatorFunction<AgentEvent, object>;

/** The encoders, with what they report to `onError`. */
const encodersWith = (onError: (error: Error) => unknown): Readonly<Record<string, Encoder>> => ({
  'AI SDK 6': toUiMessageStream({ onError }),
  'AI SDK 7': toUiMessageStream({ target: 7, onError }),
  'AG-UI': toAgUi({ onError }),
  responses: encoded(
    createResponseEncoder({
      ...{ model: 'm', conversation: 's', asking: undefined, decided: [], discarded: [] },
      masks: createMasks({ onError }),
    }),
    { onError },
  ),
  'chat completions': toChunks({ model: 'm', asked: {}, withUsage: true, masks: { onError } }),
});

interface Encoded {
  readonly bytes: string;
  readonly errors: readonly string[];
}

/** What a client gets, and what `onError` hears. A time is the same in each second. */
const encodedOf = async (event$: Observable<AgentEvent>, name: string): Promise<Encoded> => {
  const errors: string[] = [];
  const encode = encodersWith((error) => void errors.push(error.message))[name];
  if (encode === undefined) throw new Error(`There is no encoder '${name}'.`);
  const text$ = event$.pipe(
    encode,
    toServerSentEvents(),
    reduce((all, piece) => all + piece, ''),
  );
  const bytes = await lastValueFrom(text$);
  return { bytes: bytes.replaceAll(/"created(_at)?":\d+/gu, '"created":0'), errors };
};

/** The events of a call while it runs, and its error after them. */
const recordedOf = (event$: Observable<AgentEvent>) => {
  const events: AgentEvent[] = [];
  let error: unknown;
  return lastValueFrom(
    event$.pipe(
      map((event) => events.push(event)),
      catchError((cause: unknown) => {
        error = cause;
        return EMPTY;
      }),
    ),
    { defaultValue: 0 },
  ).then(() => concat(from(events), error === undefined ? EMPTY : throwError(() => error)));
};

/** A case for each call of the scenarios: what a store gives back encodes as the call did while it ran. */
export const encodesWhatIsStored = (store: () => CallStore): void => {
  it.each(scenarios)('$name', async ({ stream$ }) => {
    const calls = store();
    const callId = crypto.randomUUID();
    const live$ = await recordedOf(stream$({ callId, use: [journal(calls)] }));
    const stored$ = replay$(calls, callId, { speed: Infinity });
    for (const name of Object.keys(encodersWith(isMillraceError))) {
      const live = await encodedOf(live$, name);
      expect([name, await encodedOf(stored$, name)]).toEqual([name, live]);
      expect(live.bytes).not.toBe('');
    }
  });
};
