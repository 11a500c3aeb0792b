import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  catchError,
  concat,
  defer,
  delay,
  EMPTY,
  from,
  lastValueFrom,
  map,
  NEVER,
  type Observable,
  of,
  takeUntil,
  tap,
  throwError,
  timer,
  toArray,
  VirtualTimeScheduler,
} from 'rxjs';
import {
  type AgentEvent,
  createAgent,
  fallback,
  inProcessMemory,
  interruptOn,
  isMillraceError,
  type Message,
  MillraceError,
  type Model,
  type ModelChunk,
  retry,
  textOf,
  timeouts,
  tool,
  toolOutput,
  type Use,
} from '../index.js';
import { unpaired } from '../values/pairing.js';
import { finish, text, thinking, toolCall, verifyEvents } from '../testing/index.js';
import { sessions } from '../layers/sessions/index.js';

/** What a scripted model does in one answer: its chunks, how far apart they are, and how it ends. */
const chunk: fc.Arbitrary<ModelChunk> = fc.oneof(
  fc.string({ maxLength: 5 }).map(text),
  fc.string({ maxLength: 5 }).map(thinking),
  fc
    .record({
      name: fc.constantFrom(
        'ok',
        'throws',
        'late',
        'never',
        'stream',
        'final',
        'unknown',
        '__proto__',
      ),
      id: fc.option(fc.constantFrom('a', 'b', 'constructor'), { nil: undefined }),
    })
    .map(({ name, id }) => toolCall(name, {}, id)),
  fc
    .record({
      index: fc.nat(2),
      name: fc.constantFrom('ok', 'late'),
      json: fc.constantFrom('{}', '{"a":', '[]', ''),
    })
    .map((it): ModelChunk => ({ type: 'toolCall', ...it })),
  fc.constant<ModelChunk>({ type: 'restart', why: 'the connection broke' }),
  fc.constant<ModelChunk>({ type: 'malformed', feedback: 'unreadable' }),
);
const answer = fc.record({
  chunks: fc.array(chunk, { maxLength: 6 }),
  gap: fc.constantFrom(0, 0, 3),
  end: fc.constantFrom(
    'stop',
    'stop',
    'stop',
    'length',
    'refusal',
    'pause',
    'broken',
    'error',
    'reset',
    'stall',
  ),
});
const script = fc.array(answer, { minLength: 1, maxLength: 5 });
const fate = fc.record({
  /** When the caller interrupts, aborts or leaves; 0 is never. */
  interruptAt: fc.constantFrom(0, 0, 1, 5, 20),
  leaveAt: fc.constantFrom(0, 0, 1, 5, 20),
  maxIterations: fc.integer({ min: 1, max: 4 }),
  parallel: fc.constantFrom(true, false),
  onLimit: fc.constantFrom('answer', 'error', 'partial'),
  /** What stands around the model. */
  wrapped: fc.constantFrom('not', 'not', 'retry', 'partial', 'fallback', 'all'),
});

type Answer = typeof answer extends fc.Arbitrary<infer Value> ? Value : never;
type Fate = typeof fate extends fc.Arbitrary<infer Value> ? Value : never;

const played = (
  { chunks, gap, end }: Answer,
  scheduler: VirtualTimeScheduler,
): Observable<ModelChunk> => {
  const spaced = chunks.map((it) =>
    gap === 0 ? of(it) : timer(gap, scheduler).pipe(map(() => it)),
  );
  const last = {
    broken: EMPTY,
    error: throwError(() => new Error('socket closed')),
    reset: throwError(() => new MillraceError('connection', 'reset')),
    stall: NEVER,
  };
  return concat(...spaced, isBroken(end) ? last[end] : of(finish(end)));
};

const isBroken = (end: Answer['end']): end is 'broken' | 'error' | 'reset' | 'stall' =>
  ['broken', 'error', 'reset', 'stall'].includes(end);

const wrap = (model: Model, how: Fate['wrapped']): Model => {
  switch (how) {
    case 'not':
      return model;
    case 'retry':
      return retry(model, { minMs: 3 });
    case 'partial':
      return retry(model, { minMs: 3, retryPartial: true });
    case 'fallback':
      return fallback(model, model);
    case 'all':
      return timeouts(
        fallback(retry(model, { minMs: 3, retryPartial: true }), retry(model, { minMs: 1 })),
        { firstChunkMs: 20, chunkMs: 10 },
      );
  }
};

const toolsOn = (scheduler: VirtualTimeScheduler) =>
  Object.entries<() => unknown>({
    ok: () => 'ok',
    throws: () => {
      throw new Error('no');
    },
    late: () => timer(4, scheduler).pipe(map(() => 'late')),
    never: () => NEVER,
    stream: () => concat(of('a'), timer(2, scheduler).pipe(map(() => 'b'))),
    final: () => toolOutput({ content: 'final', finalAnswer: true }),
  }).map(([name, run]) => tool({ name, description: name, run }));

/** Plays a script to its end in virtual time, and tells all that can be seen of it. */
const play = (
  answers: readonly Answer[],
  { interruptAt, leaveAt, wrapped, ...limits }: Fate,
  use: Use = [],
) => {
  const scheduler = new VirtualTimeScheduler();
  const never = timer(10_000, scheduler);
  let requests = 0;
  let listening = 0;
  const model: Model = {
    name: 'scripted',
    stream$: () =>
      defer(() => {
        const next = answers[requests % answers.length];
        requests += 1;
        listening += 1;
        return next === undefined ? of(finish()) : played(next, scheduler);
      }).pipe(tap({ finalize: () => (listening -= 1) })),
  };
  const memory = inProcessMemory();
  const session = sessions(
    createAgent({
      model: wrap(model, wrapped),
      tools: toolsOn(scheduler),
    }),
    { memory },
  ).open('s');
  const events: AgentEvent[] = [];
  let outcome = 'left';
  session
    .stream$('?', {
      callId: 'c',
      scheduler,
      limits: { ...limits, timeouts: { callMs: 5000, toolMs: 50 } },
      use: [...use, interruptOn(interruptAt === 0 ? never : timer(interruptAt, scheduler))],
    })
    .pipe(verifyEvents(), takeUntil(leaveAt === 0 ? NEVER : timer(leaveAt, scheduler)))
    .subscribe({
      next: (event) => events.push(event),
      error: (error: unknown) =>
        (outcome = isMillraceError(error) ? error.code : `broken: ${String(error)}`),
      complete: () => (outcome = events.at(-1)?.type === 'postCall' ? 'replied' : 'left'),
    });
  scheduler.flush();
  return { events, outcome, requests, listening, session, memory: memory('s') };
};

const stored = (memory: { load$(): Observable<readonly Message[]> }): readonly Message[] => {
  let messages: readonly Message[] = [];
  memory.load$().subscribe((loaded) => (messages = loaded));
  return messages;
};

/** Layers that pass everything on, immediately or later. */
const pass: Use = [
  {
    name: 'pass',
    step: () => (next) => (step) => next(step),
    model: () => (next) => next,
    turn: (phases) => phases,
  },
];
const later: Use = [
  {
    name: 'later',
    step:
      ({ scheduler }) =>
      (next) =>
      (step) =>
        next(step).pipe(delay(0, scheduler)),
  },
];

/** What happens in each branch of a call: in the loop, and in each of its tool calls. */
const branches = (events: readonly AgentEvent[]): unknown => {
  const all = new Map<string, unknown[]>();
  for (const { seq: _seq, at: _at, ...event } of events) {
    const ofTool = 'toolCall' in event && event.type.includes('cting') ? event.toolCall.id : 'loop';
    all.set(ofTool, [...(all.get(ofTool) ?? []), event]);
  }
  return all;
};

const runs = { numRuns: 200 };

describe('over random scripts of model, tools, faults and interrupts', () => {
  it('I1: what is stored is paired after any exit, with unique ids, and events keep their grammar', () => {
    fc.assert(
      fc.property(script, fate, (answers, how) => {
        const { memory, outcome } = play(answers, how);
        expect(outcome).not.toMatch(/broken/);
        const messages = stored(memory);
        expect(unpaired(messages)).toBeUndefined();
        const ids = messages.flatMap((message) =>
          message.role === 'tool' ? message.content.map(({ toolCallId }) => toolCallId) : [],
        );
        expect(new Set(ids).size).toBe(ids.length);
        expect(new Set(messages.map(({ id }) => id)).size).toBe(messages.length);
        expect(messages.every(({ content }) => content.length > 0)).toBe(true);
      }),
      runs,
    );
  });

  it('I2: as many results as uses, in call order, no matter what the siblings did', () => {
    fc.assert(
      fc.property(script, fate, (answers, how) => {
        const { events, outcome } = play(answers, how);
        const last = events.at(-1);
        if (outcome !== 'replied' || last?.type !== 'postCall') return;
        const results = events.filter(({ type }) => type === 'postActing').length;
        expect(last.reply.toolCalls).toHaveLength(results);
      }),
      runs,
    );
  });

  it('I5: after leaving, nothing listens to the model, and the session is free', () => {
    fc.assert(
      fc.property(script, fate, (answers, how) => {
        const { listening, session } = play(answers, how);
        expect(listening).toBe(0);
        expect(session.interrupt()).toBe(false);
      }),
      runs,
    );
  });

  it('I7: maxIterations allows so many reasoning calls, and one closing call', () => {
    fc.assert(
      fc.property(script, fate, (answers, how) => {
        const { events } = play(answers, how);
        const count = (type: string) => events.filter((event) => event.type === type).length;
        expect(count('preReasoning')).toBeLessThanOrEqual(how.maxIterations);
        expect(count('preSummary')).toBeLessThanOrEqual(how.onLimit === 'answer' ? 1 : 0);
      }),
      runs,
    );
  });

  it('I9: the text deltas of each message that survives, joined, are its stored text', () => {
    fc.assert(
      fc.property(script, fate, (answers, how) => {
        const { events, memory } = play(answers, how);
        const shown = new Map<string, string>();
        for (const event of events) {
          if (event.type === 'messageDiscarded') shown.delete(event.messageId);
          if (event.type !== 'reasoningChunk' && event.type !== 'summaryChunk') continue;
          if (event.kind !== 'text') continue;
          shown.set(event.messageId, (shown.get(event.messageId) ?? '') + event.delta);
        }
        for (const message of stored(memory)) {
          const told = shown.get(message.id);
          if (message.role === 'assistant' && told !== undefined)
            expect(textOf(message)).toBe(told);
        }
      }),
      runs,
    );
  });

  it('Y1: a layer that passes steps on changes nothing, interrupted or left at any moment', () => {
    fc.assert(
      fc.property(script, fate, (answers, how) => {
        const [bare, passed] = [play(answers, how), play(answers, how, pass)];
        expect(branches(passed.events)).toEqual(branches(bare.events));
        expect([passed.outcome, passed.requests]).toEqual([bare.outcome, bare.requests]);
        expect(stored(passed.memory)).toEqual(stored(bare.memory));
      }),
      runs,
    );
  });

  it('Y1: a layer that passes steps on later changes nothing in any branch of a call', () => {
    fc.assert(
      fc.property(script, fate, (answers, how) => {
        // What happens at the same moment as an interrupt may come before it or after it.
        const undisturbed: Fate = { ...how, interruptAt: 0, leaveAt: 0 };
        const [bare, late] = [play(answers, undisturbed), play(answers, undisturbed, later)];
        expect(branches(late.events)).toEqual(branches(bare.events));
        expect([late.outcome, late.requests]).toEqual([bare.outcome, bare.requests]);
        expect(stored(late.memory)).toEqual(stored(bare.memory));
      }),
      runs,
    );
  });

  it('I9: call$ and stream$ end alike', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(answer, { minLength: 1, maxLength: 3 }), async (answers) => {
        const scripted = () => {
          let index = 0;
          return createAgent({
            tools: toolsOn(new VirtualTimeScheduler()).filter(({ name }) => name === 'ok'),
            model: {
              name: 'm',
              stream$: () => from([...(answers[index++ % answers.length]?.chunks ?? []), finish()]),
            },
          });
        };
        const options = {
          callId: 'c',
          limits: { maxIterations: 3, onLimit: 'partial', parseBackoffMs: 0 },
        } as const;
        const code = catchError((error: unknown) => of({ failed: String(error) }));
        const called = await lastValueFrom(scripted().call$('?', options).pipe(code));
        const streamed = await lastValueFrom(
          scripted()
            .stream$('?', options)
            .pipe(
              toArray(),
              map((events) => events.at(-1)),
              map((event) => (event?.type === 'postCall' ? event.reply : undefined)),
              code,
            ),
        );
        const timeless = (reply: unknown) => ({
          ...(reply as object),
          createdAt: 0,
          elapsedMs: 0,
          toolCalls: 0,
        });
        expect(timeless(called)).toEqual(timeless(streamed));
      }),
      { numRuns: 100 },
    );
  });
});
