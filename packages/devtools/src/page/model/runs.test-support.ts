// Logs of calls as they are: an agent with parallel tools, a sub-agent and a retry runs in virtual time.
import {
  type AgentEvent,
  createAgent,
  type Layer,
  MillraceError,
  type ModelChunk,
  on,
  retry,
  tool,
} from 'millrace';
import { agentTool } from 'millrace/teams';
import { finish, scriptedModel, text, thinking, toolCall } from 'millrace/testing';
import {
  concat,
  concatMap,
  delay,
  from,
  map,
  mergeMap,
  type Observable,
  of,
  type SchedulerLike,
  tap,
  throwError,
  timer,
  VirtualTimeScheduler,
} from 'rxjs';
import {
  type ChunkRun,
  isDeltaKind,
  type LogItem,
  type Mark,
  type ShownEvent,
} from '../protocol.js';

const startedAt = 1_700_000_000_000;

/** Chunks in the tempo of a model: the first after `first` milliseconds, then one each `every`. */
const spoken = (
  chunks: readonly ModelChunk[],
  scheduler: SchedulerLike,
  first: number,
  every: number,
): Observable<ModelChunk> =>
  from(chunks).pipe(
    concatMap((chunk, index) => of(chunk).pipe(delay(index === 0 ? first : every, scheduler))),
  );

const words = (sentence: string): readonly ModelChunk[] =>
  (sentence.match(/\S+\s*/gu) ?? []).map(text);

const usage = (inputTokens: number, outputTokens: number): ModelChunk => ({
  type: 'usage',
  usage: { inputTokens, outputTokens },
});

const argumentsOf = (name: string, id: string, index: number, input: object): ModelChunk[] => {
  const json = JSON.stringify(input);
  const pieces = json.match(/.{1,9}/gsu) ?? [];
  return [
    { type: 'toolCall', index, id, name },
    ...pieces.map((piece): ModelChunk => ({ type: 'toolCall', index, json: piece })),
  ];
};

const answer =
  'The ferry to Flåm leaves at 08:10 and takes two hours. It will be dry until noon, with light wind from the west. ' +
  'I recommend the morning boat: the afternoon may bring showers, and the fjord is at its calmest before ten. ' +
  'Take a jacket, and keep the ticket for the railway back up to Myrdal.';

export interface Travel {
  readonly items: readonly LogItem[];
  readonly events: readonly AgentEvent[];
}

/** A call about a journey: marks are as the inspecting layers of the server report them. */
export const travel = (
  options: { readonly marks?: boolean; readonly callId?: string; readonly weather?: string } = {},
): Travel => {
  const { marks = true, callId = 'c', weather = 'Dry until noon.' } = options;
  const scheduler = new VirtualTimeScheduler();
  scheduler.now = () => startedAt + scheduler.frame;
  const log: (AgentEvent | Mark)[] = [];
  const researcher = createAgent({
    name: 'Researcher',
    model: scriptedModel(
      () =>
        spoken(
          [
            ...words('Looking it up.'),
            toolCall('search', { query: 'Flåm ferry' }),
            usage(420, 30),
            finish(),
          ],
          scheduler,
          180,
          25,
        ),
      () =>
        spoken(
          [...words('The ferry leaves at 08:10 and takes two hours.'), usage(512, 21), finish()],
          scheduler,
          210,
          22,
        ),
    ),
    tools: [
      tool({
        name: 'search',
        description: 'Searches.',
        run: () =>
          concat(
            ...['2 of 6 pages', '4 of 6 pages', '6 of 6 pages'].map((value) =>
              of({ value }).pipe(
                delay(140, scheduler),
                map(({ value: progress }) => progress),
              ),
            ),
            of('ferry: 08:10, 120 minutes'),
          ),
      }),
    ],
  });
  let attempts = 0;
  const script = scriptedModel(
    () =>
      spoken(
        [
          ...['The user ', 'wants to ', 'travel; ', 'I need ', 'weather ', 'and ferries.'].map(
            (piece) => thinking(piece),
          ),
          ...words('Let me check both.'),
          ...argumentsOf('weather', 'w1', 0, { city: 'Flåm', days: 1, units: 'metric' }),
          ...argumentsOf('Researcher', 'r1', 1, { user_prompt: 'Find the ferry to Flåm.' }),
          ...argumentsOf('tickets', 't1', 2, { from: 'Gudvangen', to: 'Flåm' }),
          usage(1_250, 140),
          finish(),
        ],
        scheduler,
        320,
        18,
      ),
    () =>
      spoken(
        [thinking('Both are known.'), ...words(answer), usage(1_840, 96), finish()],
        scheduler,
        450,
        24,
      ),
  );
  const model = retry(
    {
      ...script,
      stream$: (request, context) => {
        attempts += 1;
        return attempts === 2
          ? timer(120, scheduler).pipe(
              mergeMap(() =>
                throwError(() => new MillraceError('rateLimited', 'Too many requests.')),
              ),
            )
          : script.stream$(request, context);
      },
    },
    { minMs: 400, jitter: 0 },
  );
  const agent = createAgent({
    name: 'Guide',
    model,
    tools: [
      tool({
        name: 'weather',
        description: 'Tells the weather.',
        run: () => of(weather).pipe(delay(640, scheduler)),
      }),
      agentTool(researcher, { description: 'Researches.' }),
      tool({
        name: 'tickets',
        description: 'Sells tickets.',
        run: () =>
          timer(230, scheduler).pipe(
            mergeMap(() => throwError(() => new Error('The counter is closed.'))),
          ),
      }),
    ],
    use: [
      ...(marks ? [inspecting((mark) => log.push(mark))] : []),
      on('postActing', delay(35, scheduler)),
    ],
  });
  const events: AgentEvent[] = [];
  agent
    .stream$('When does the ferry to Flåm leave, and what will the weather be?', {
      callId,
      scheduler,
    })
    .subscribe({
      next: (event) => {
        events.push(event);
        log.push(event);
      },
      error: () => undefined,
    });
  scheduler.flush();
  return { items: toItems(log), events };
};

/** Reports steps and requests, as the layers of the server do. */
export const inspecting = (report: (mark: Mark) => void): Layer => {
  let requests = 0;
  const watched = <T>(
    source: Observable<T>,
    mark: (phase: 'started' | 'ended' | 'failed' | 'cancelled') => void,
  ): Observable<T> =>
    source.pipe(
      tap({
        subscribe: () => mark('started'),
        complete: () => mark('ended'),
        error: () => mark('failed'),
        unsubscribe: () => mark('cancelled'),
      }),
    );
  return {
    name: 'inspecting',
    priority: 6,
    inherit: true,
    step:
      ({ info: call, scheduler }) =>
      (next) =>
      (step) =>
        watched(next(step), (phase) =>
          report({
            mark: 'step',
            at: scheduler.now(),
            callId: call.callId,
            id: step.id,
            kind: step.kind,
            phase,
          }),
        ),
    model:
      ({ info: call, scheduler }) =>
      (model) => ({
        ...model,
        stream$: (request, context) => {
          const id = `q${(requests += 1)}`;
          return watched(model.stream$(request, context), (phase) =>
            report({
              mark: 'request',
              at: scheduler.now(),
              callId: call.callId,
              id,
              messageId: context.stepId,
              model: model.name,
              phase,
            }),
          );
        },
      }),
  };
};

/** Events as the feed has them: plain JSON, with chunks in a row as runs. */
export const toItems = (log: readonly (AgentEvent | Mark)[]): readonly LogItem[] => {
  const items: LogItem[] = [];
  for (const item of log) {
    if ('mark' in item) {
      items.push(item);
      continue;
    }
    if (!isChunk(item)) {
      items.push(shown(item));
      continue;
    }
    const {
      type,
      seq,
      callId,
      parentId,
      agent,
      iteration,
      messageId,
      kind,
      delta,
      toolCall: of,
      at,
    } = item;
    if (!isDeltaKind(kind)) continue;
    const last = items.at(-1) as Partial<ChunkRun> | undefined;
    if (last?.messageId === messageId && last.kind === kind && last.toolCall?.index === of?.index) {
      (last.ats as number[]).push(at);
      (last.deltas as string[]).push(delta);
      continue;
    }
    items.push({
      chunks: type,
      ...{ seq, callId, agent, iteration, messageId, kind },
      ...(parentId !== undefined && { parentId }),
      ...(of !== undefined && { toolCall: of }),
      ...{ ats: [at], deltas: [delta] },
    });
  }
  return items;
};

const isChunk = (event: AgentEvent): event is Extract<AgentEvent, { type: 'reasoningChunk' }> =>
  event.type === 'reasoningChunk';

export const shown = (event: AgentEvent): ShownEvent =>
  JSON.parse(
    JSON.stringify(event, (_, value: unknown) =>
      value instanceof MillraceError
        ? { name: value.name, code: value.code, message: value.message, retryable: value.retryable }
        : value,
    ),
  );

/** An event for logs that are written by hand. */
export const eventOf = (type: string, at: number, fields: object = {}): ShownEvent =>
  ({
    ...{ type, at, seq: at, rootId: 'c', callId: 'c', agent: ['Guide'], iteration: 1 },
    ...fields,
  }) as unknown as ShownEvent;

/** Chunks of one message in a row. */
export const runOf = (
  deltas: readonly string[],
  at: number,
  fields: Partial<ChunkRun> = {},
): ChunkRun => ({
  ...{ chunks: 'reasoningChunk', seq: at, callId: 'c', agent: ['Guide'], iteration: 1 },
  ...{ messageId: 'c/1', kind: 'text', deltas, ats: deltas.map((_, index) => at + index) },
  ...fields,
});
