import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  type AgentEvent,
  type AssistantMessage,
  createAgent,
  type EventOf,
  interruptOn,
  isMillraceError,
  MillraceError,
  type ModelChunk,
  on,
  onCall,
  requireApproval,
  retry,
  suspend,
  textBlock,
  textOf,
  tool,
  toolOutput,
} from 'millrace';
import { finish, text, thinking, toolCall, verifyEvents } from 'millrace/testing';
import {
  concat,
  defer,
  EMPTY,
  filter,
  from,
  map,
  type MonoTypeOperatorFunction,
  NEVER,
  type Observable,
  of,
  takeUntil,
  throwError,
  timer,
  VirtualTimeScheduler,
} from 'rxjs';
import { chunkComplaints } from './check-chunks.test-support.js';
import { toAgUi, toUiMessageStream } from './index.js';
import {
  answerAmong,
  answerIn,
  complaintsOf,
  forInstalled,
  readAsAgUi,
  readAsAiSdk,
  refusedChunks,
} from './read-as-client.test-support.js';

const words = fc.string({ maxLength: 4 });
const toolNames = [
  'ok',
  'throws',
  'late',
  'never',
  'stream',
  'final',
  'agent',
  'asked',
  'later',
  'unknown',
  '',
];
const chunk: fc.Arbitrary<ModelChunk> = fc.oneof(
  { weight: 3, arbitrary: words.map(text) },
  words.map(thinking),
  fc
    .record({
      name: fc.constantFrom(...toolNames),
      id: fc.option(fc.constantFrom('a', 'b', '__proto__'), { nil: undefined }),
    })
    .map(({ name, id }) => toolCall(name, {}, id)),
  fc
    .record({
      index: fc.nat(2),
      name: fc.option(fc.constantFrom('ok', 'late'), { nil: undefined }),
      json: fc.constantFrom('{}', '{"a":', '1}', '[]', ''),
    })
    .map(({ index, name, json }): ModelChunk => ({
      type: 'toolCall',
      index,
      json,
      ...(name === undefined ? {} : { name }),
    })),
  fc.constant<ModelChunk>({ type: 'restart', why: 'the connection broke' }),
  fc.constant<ModelChunk>({ type: 'malformed', feedback: 'unreadable' }),
  fc.constant<ModelChunk>({
    type: 'block',
    block: { type: 'image', source: { kind: 'url', url: 'https://a.b/c.png' } },
  }),
);
const answer = fc.record({
  chunks: fc.array(chunk, { maxLength: 6 }),
  gap: fc.constantFrom(0, 0, 3),
  end: fc.constantFrom('stop', 'stop', 'stop', 'length', 'pause', 'broken', 'error', 'stall'),
});
const script = fc.array(answer, { minLength: 1, maxLength: 5 });
const fate = fc.record({
  interruptAt: fc.constantFrom(0, 0, 1, 5, 20),
  says: fc.constantFrom('Stopped.', undefined),
  /** When the events just stop, or the caller aborts. */
  cutAt: fc.constantFrom(0, 0, 0, 4),
  abortAt: fc.constantFrom(0, 0, 0, 4),
  maxIterations: fc.integer({ min: 1, max: 4 }),
  onLimit: fc.constantFrom('answer', 'error', 'partial'),
  /** What an interceptor of this type does, and how often. */
  at: fc.constantFrom<Parameters<typeof on>[0]>(
    'preReasoning',
    'postReasoning',
    'preActing',
    'postActing',
    'postSummary',
    'postCall',
  ),
  does: fc.constantFrom('nothing', 'veto', 'edit', 'again'),
  every: fc.integer({ min: 1, max: 2 }),
  retried: fc.boolean(),
});

type Answer = typeof answer extends fc.Arbitrary<infer Value> ? Value : never;
type Fate = typeof fate extends fc.Arbitrary<infer Value> ? Value : never;

const played = ({ chunks, gap, end }: Answer, scheduler: VirtualTimeScheduler) => {
  const spaced = chunks.map((it) =>
    gap === 0 ? of(it) : timer(gap, scheduler).pipe(map(() => it)),
  );
  const ends: Readonly<Record<Answer['end'], Observable<ModelChunk>>> = {
    stop: of(finish('stop')),
    length: of(finish('length')),
    pause: of(finish('pause')),
    broken: EMPTY,
    error: throwError(() => new MillraceError('connection', 'reset')),
    stall: NEVER,
  };
  return concat(...spaced, ends[end]);
};

const modelOf = (answers: readonly Answer[], scheduler: VirtualTimeScheduler) => {
  let requests = 0;
  return {
    name: 'scripted',
    stream$: () =>
      defer(() => {
        const next = answers[requests % answers.length];
        requests += 1;
        return next === undefined ? of(finish()) : played(next, scheduler);
      }),
  };
};

const interceptorOf = ({ at, does, every }: Fate) => {
  const sometimes = <Event>(change: MonoTypeOperatorFunction<Event>) => {
    let n = 0;
    return (event$: Observable<Event>): Observable<Event> =>
      defer(() => {
        n += 1;
        return n % every === 0 ? event$.pipe(change) : event$;
      });
  };
  const content = [textBlock('Edited.')];
  const edited = (message: AssistantMessage): AssistantMessage => ({
    ...message,
    content: [...message.content.filter(({ type }) => type !== 'text'), ...content],
  });
  switch (does) {
    case 'nothing':
      return [];
    case 'veto':
      return [onCall(at, () => sometimes(filter(() => false)))];
    case 'again':
      return [
        onCall('postReasoning', () =>
          sometimes<EventOf<'postReasoning'>>(map((it) => ({ ...it, again: 'Better!' }))),
        ),
      ];
    case 'edit':
      return [
        onCall('postReasoning', () =>
          sometimes<EventOf<'postReasoning'>>(
            map((it) => (it.type === at ? { ...it, message: edited(it.message) } : it)),
          ),
        ),
        on(
          'postSummary',
          map((it) => (it.type === at ? { ...it, message: edited(it.message) } : it)),
        ),
        on(
          'preActing',
          map((it) =>
            it.type === at
              ? { ...it, toolCall: { ...it.toolCall, name: 'ok', input: { b: 1 } } }
              : it,
          ),
        ),
        on(
          'postCall',
          map((it) => (it.type === at ? { ...it, reply: { ...it.reply, content } } : it)),
        ),
      ];
  }
};

const toolsOn = (scheduler: VirtualTimeScheduler, answers: readonly Answer[]) => [
  ...Object.entries<() => unknown>({
    ok: () => 'ok',
    throws: () => {
      throw new Error('no');
    },
    late: () => timer(4, scheduler).pipe(map(() => 'late')),
    never: () => NEVER,
    later: () => suspend({ by: 'somebody' }),
    stream: () => concat(of('a'), timer(2, scheduler).pipe(map(() => 'b'))),
    final: () => toolOutput({ content: 'final', finalAnswer: true }),
  }).map(([name, run]) => tool({ name, description: name, run })),
  requireApproval(
    tool({
      name: 'asked',
      description: 'asked',
      run: () => 'ok',
    }),
    ({ context }) => timer(2, scheduler).pipe(map(() => context.iteration % 2 === 1)),
  ),
  tool({
    name: 'agent',
    description: 'Asks another.',
    run: (_input, context) =>
      createAgent({
        name: 'below',
        model: modelOf(answers.toReversed(), scheduler),
        tools: [tool({ name: 'ok', description: 'ok', run: () => 'ok' })],
      })
        .call$('?', { parent: context, limits: { maxIterations: 2 } })
        .pipe(map((reply) => textOf(reply))),
  }),
];

/** Plays a script to its end in virtual time. */
const play = (answers: readonly Answer[], how: Fate): readonly AgentEvent[] => {
  const scheduler = new VirtualTimeScheduler();
  const plain = modelOf(answers, scheduler);
  const model = how.retried ? retry(plain, { minMs: 1, retryPartial: true }) : plain;
  const tools = toolsOn(scheduler, answers);
  const agent = createAgent({ model, tools, use: interceptorOf(how) });
  const controller = new AbortController();
  if (how.abortAt > 0) timer(how.abortAt, scheduler).subscribe(() => controller.abort());
  const { interruptAt, says, cutAt, maxIterations, onLimit } = how;
  const events: AgentEvent[] = [];
  agent
    .stream$('?', {
      callId: 'c',
      scheduler,
      limits: { maxIterations, onLimit, timeouts: { callMs: 5000, toolMs: 50 } },
      signal: controller.signal,
      use: [
        interruptOn(
          interruptAt === 0 ? NEVER : timer(interruptAt, scheduler).pipe(map(() => says)),
        ),
      ],
    })
    .pipe(verifyEvents(), takeUntil(cutAt === 0 ? NEVER : timer(cutAt, scheduler)))
    .subscribe({
      next: (event) => events.push(event),
      error: (error: unknown) => {
        if (!isMillraceError(error)) throw new Error(`broken: ${String(error)}`);
      },
    });
  scheduler.flush();
  return events;
};

/** As a call emits them: it errors behind an `error` event. */
const replayed = (events: readonly AgentEvent[]): Observable<AgentEvent> => {
  const last = events.at(-1);
  return last?.type === 'error'
    ? concat(
        from(events),
        throwError(() => last.error),
      )
    : from(events);
};

const collected = <T>(value$: Observable<T>): readonly T[] => {
  const values: T[] = [];
  let completed = false;
  value$.subscribe({ next: (value) => values.push(value), complete: () => (completed = true) });
  expect(completed).toBe(true);
  return values;
};

describe('over random scripts of models, tools, faults, interceptors and interrupts', () => {
  it("I9: AG-UI's verifier and schema accept every event, and everything that starts ends", () => {
    fc.assert(
      fc.property(script, fate, (answers, how) => {
        const events = collected(replayed(play(answers, how)).pipe(toAgUi()));
        expect(complaintsOf(events)).toEqual([]);
      }),
      { numRuns: 200 },
    );
  });

  it('I9: everything that starts in a UI message ends, for readers of both versions', () => {
    fc.assert(
      fc.property(script, fate, (answers, how) => {
        const events = play(answers, how);
        expect(chunkComplaints(collected(replayed(events).pipe(toUiMessageStream())))).toEqual([]);
        const chunks7 = collected(replayed(events).pipe(toUiMessageStream({ target: 7 })));
        expect(chunkComplaints(chunks7)).toEqual([]);
      }),
      { numRuns: 200 },
    );
  });

  /** A reply that is what was said two messages ago. */
  const saidBefore: readonly Answer[] = [
    {
      chunks: [
        { type: 'toolCall', index: 0, json: '{}' },
        { type: 'text', text: '!' },
      ],
      gap: 0,
      end: 'stop',
    },
    { chunks: [], gap: 0, end: 'stop' },
  ];
  const atTheLimit: Fate = {
    ...{ interruptAt: 0, says: 'Stopped.', cutAt: 0, abortAt: 0, maxIterations: 2 },
    ...{ onLimit: 'partial', at: 'preReasoning', does: 'nothing', every: 1, retried: false },
  };

  it('I9: both clients end up with the text of the reply, and report no error', async () => {
    const toChunks = await forInstalled();
    await fc.assert(
      fc.asyncProperty(script, fate, async (answers, how) => {
        const events = play(answers, how);
        const last = events.findLast(({ parentId }) => parentId === undefined);
        // A suspended call has no words of its own: what was said beside its tool stays in view.
        const answered =
          last?.type === 'postCall' && last.reply.reason !== 'suspended'
            ? textOf(last.reply)
            : undefined;

        const chunks = collected(replayed(events).pipe(toChunks));
        expect(await refusedChunks(chunks)).toEqual([]);
        const { message, errors } = await readAsAiSdk(chunks);
        expect(errors).toHaveLength(
          last?.type === 'error' && last.error.code !== 'aborted' ? 1 : 0,
        );
        expect(answered === undefined ? undefined : answerIn(message)).toBe(answered);

        const run = await readAsAgUi(collected(replayed(events).pipe(toAgUi())));
        expect(run.errors).toHaveLength(errors.length);
        if (answered !== undefined && answered !== '') expect(answerAmong(run)).toBe(answered);
      }),
      {
        numRuns: 50,
        examples: [
          [saidBefore, atTheLimit],
          // The last step shows no message, as the model is to write another one.
          [saidBefore, { ...atTheLimit, does: 'again', every: 2 }],
        ],
      },
    );
  });
});
