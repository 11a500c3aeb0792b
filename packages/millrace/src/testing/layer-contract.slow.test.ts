import { describe, expect, it } from '@jest/globals';
import {
  concat,
  concatMap,
  delay,
  delayWhen,
  EMPTY,
  from,
  identity,
  map,
  NEVER,
  type Observable,
  of,
  ReplaySubject,
  type Subject,
  share,
  take,
  tap,
  timer,
} from 'rxjs';
import { answerWith, interruptLayer } from '../call/index.js';
import {
  addTools,
  approval,
  type Context,
  conversation,
  guardOutput,
  history,
  interruptOn,
  type Layer,
  logEvents,
  onCall,
  output,
  prepare,
  selectTools,
  strictHistory,
  tool,
  transformChunks,
  type Use,
  watch,
} from '../index.js';
import { createCallStore, draining, inProcessCalls, journal } from '../journal/index.js';
import { fitContext, withEviction } from '../layers/fitting/index.js';
import { guardAnswer, guardInput, guardResults, redact } from '../layers/guards/index.js';
import { inProcessLongTermMemory, withLongTermMemory } from '../layers/long-term-memory/index.js';
import { rewriteQuestion } from '../layers/planning/index.js';
import { retrieve } from '../layers/retrieval/index.js';
import { budget, createSemaphore, limitCalls } from '../layers/traffic/index.js';
import { suspendBelow } from '../memories/suspend.js';
import { insertBefore, phase, reasoning } from '../phases/index.js';
import { jsonSchema } from '../schema/index.js';
import { finish, layerContract, scriptedModel, text } from './index.js';

type Call = NonNullable<Layer['call']>;
type Step = NonNullable<Layer['step']>;

const aroundCalls = (call: Call): Layer => ({ name: 'own', call });
const aroundSteps = (step: Step): Layer => ({ name: 'own', step });

/** Only the calls that the contract interrupts wait. */
const slow$ = ({ info }: Pick<Context, 'info'>): Observable<unknown> =>
  info.callId === 'interrupted' ? timer(600) : of(0);

/** Broken layers: the check that fails, what they do, and the part of the message that says so. */
const broken: readonly (readonly [
  rule: string,
  what: string,
  create: () => Use[number],
  says: RegExp,
])[] = [
  [
    'passes a call on, and no more than once',
    'asks twice',
    () =>
      aroundCalls(
        () => (next) => (call) => concat(next(call).pipe(concatMap(() => EMPTY)), next(call)),
      ),
    /passes a call on twice/,
  ],
  [
    'passes a call on, and no more than once',
    'passes on something else',
    () => aroundCalls(() => (next) => () => next('Hello!' as never)),
    /not a call/,
  ],
  [
    'answers a call with one reply',
    'answers twice',
    () =>
      aroundCalls(
        () => (next) => (call) => next(call).pipe(concatMap((reply) => of(reply, reply))),
      ),
    /two replies/,
  ],
  [
    'answers a call with one reply',
    'answers nothing',
    () => aroundCalls(() => (next) => (call) => next(call).pipe(concatMap(() => EMPTY))),
    /without a reply/,
  ],
  [
    'answers a call with a reply and nothing else',
    'answers with a text',
    () => aroundCalls(() => (next) => (call) => next(call).pipe(map(({ text }) => text as never))),
    /emits string/,
  ],
  [
    'emits one value for each step',
    'emits two values',
    () =>
      aroundSteps(
        () => (next) => (step) => next(step).pipe(concatMap((value) => of(value, value))),
      ),
    /two values for the step/,
  ],
  [
    'emits one value for each step',
    'emits nothing for a step that cannot be cut',
    () => aroundSteps(() => (next) => (step) => (step.kind === 'reply' ? EMPTY : next(step))),
    /nothing for the step 'reply'/,
  ],
  [
    'does not repeat a step whose tool has returned',
    'asks a tool twice',
    () =>
      aroundSteps(
        () => (next) => (step) =>
          step.kind === 'tool' ? next(step).pipe(concatMap(() => next(step))) : next(step),
      ),
    /'1\/0' on again/,
  ],
  [
    'gives back the async context after a wait',
    'lets one call after the other in',
    () => {
      const queue: Subject<void>[] = [];
      const turn = (): Observable<void> => {
        const mine = new ReplaySubject<void>(1);
        if (queue.push(mine) === 1) mine.next();
        return mine.pipe(take(1));
      };
      const leave = (): void => {
        queue.shift();
        queue[0]?.next();
      };
      return aroundCalls(
        () => (next) => (call) =>
          turn().pipe(concatMap(() => next(call).pipe(tap({ finalize: leave })))),
      );
    },
    /restoreAsyncContext/,
  ],
  [
    'keeps no subscription of next',
    'shares what it keeps',
    () =>
      aroundCalls(
        () => (next) => (call) =>
          next(call).pipe(
            share({ resetOnRefCountZero: false, connector: () => new ReplaySubject(1) }),
          ),
      ),
    /after the caller has unsubscribed/,
  ],
  [
    'does not swallow an interrupt outside of a step',
    'waits before it passes the call on',
    () =>
      aroundCalls(
        (context) => (next) => (call) => slow$(context).pipe(concatMap(() => next(call))),
      ),
    /outside of a step/,
  ],
  [
    'does not swallow an interrupt outside of a step',
    'waits before it replies',
    () =>
      aroundCalls(
        (context) => (next) => (call) => next(call).pipe(delayWhen(() => slow$(context))),
      ),
    /outside of a step/,
  ],
  [
    'does not swallow an interrupt outside of a step',
    'makes an answer of it',
    () =>
      aroundCalls(
        () => (next) => (call) =>
          next(call).pipe(map((reply) => ({ ...reply, reason: 'answer' as const }))),
      ),
    /reason 'answer'/,
  ],
  [
    'edits calls and steps as copies',
    'edits the call',
    () =>
      aroundCalls(
        () => (next) => (call) => next(Object.assign(call, { instructions: 'Be brief.' })),
      ),
    /edits the call in place/,
  ],
  [
    'edits calls and steps as copies',
    'edits steps',
    () => aroundSteps(() => (next) => (step) => next(Object.assign(step, { tries: 2 }))),
    /edits the step '.*' in place/,
  ],
  [
    'keeps no state between calls',
    'counts',
    () => {
      let count = 0;
      return aroundCalls(
        (context) => (next) => (call) =>
          (count += 1) > 5 ? answerWith(context, call, 'Enough.') : next(call),
      );
    },
    /call 6 otherwise/,
  ],
  [
    'keeps no state between calls',
    'remembers the latest call',
    () => {
      let latest = '';
      return aroundCalls(({ info }) => (next) => (call) => {
        latest = info.callId;
        return next(call).pipe(
          map((reply) =>
            latest === info.callId ? reply : { ...reply, reason: 'stopped' as const },
          ),
        );
      });
    },
    /call 11 otherwise/,
  ],
];

const failuresOf = async (create: () => Use[number]) => {
  const failures: (readonly [string, string])[] = [];
  for (const { name, run } of layerContract(create)) {
    await run().catch((error: Error) => failures.push([name, error.message]));
  }
  return failures;
};

describe('the contract of layers', () => {
  it.each(broken)(
    'Y7: reports by name a layer that does not hold it: %s, %s',
    async (rule, _, create, says) => {
      expect(await failuresOf(create)).toEqual([[rule, expect.stringMatching(says)]]);
    },
  );

  it('Y7: reports a call that fails, for every check', async () => {
    const failing = aroundCalls(() => () => () => {
      throw new Error('No user.');
    });
    const failures = await failuresOf(() => failing);
    expect(failures).toHaveLength(10);
    expect(failures[0]?.[1]).toBe("The call failed: In the layer 'own': No user.");
  });
});

const found = { retrieve$: () => of([{ text: 'Noon is at 12:00.', source: 'clock.md' }]) };
const pay = tool({ name: 'pay', description: 'Pays.', run: () => 'Paid.' });
const remembered = () =>
  withLongTermMemory(
    { model: scriptedModel() },
    { memory: inProcessLongTermMemory(), scope: () => ({ userId: 'ada' }) },
  ).use ?? [];

/** The layers of core, as a program gets them. */
const native: Readonly<Record<string, () => Use[number]>> = {
  addTools: () => addTools(pay),
  'addTools that come later': () => addTools(timer(0).pipe(map(() => [pay]))),
  approval: () => approval(() => of(true).pipe(delay(0))),
  budget: () => budget({ toolCalls: 100, tokens: 1_000_000 }),
  conversation: () => conversation,
  draining: () => draining(),
  evictResults: () => (withEviction({ model: scriptedModel() }).use ?? []).flat(),
  fitContext: () => fitContext({ contextWindow: 32_000 }),
  guardAnswer: () => guardAnswer(() => Promise.resolve(true)),
  guardInput: () => guardInput(() => timer(0).pipe(map(() => true))),
  guardOutput: () => guardOutput('secret'),
  guardResults: () => guardResults(() => Promise.resolve(true)),
  history: () =>
    history([
      { role: 'user', content: 'Hello!' },
      { role: 'assistant', content: 'Hi.' },
    ]),
  insertBefore: () => insertBefore(reasoning, () => phase((run) => of(run).pipe(delay(0)))),
  interruptLayer: () => ({ ...interruptLayer }),
  interruptOn: () => interruptOn(NEVER),
  journal: () => journal(createCallStore(inProcessCalls())),
  limitCalls: () => limitCalls(createSemaphore({ max: 1 })),
  logEvents: () =>
    logEvents({
      info: () => undefined,
      warn: () => undefined,
      error: () => undefined,
      debug: () => undefined,
    }),
  onCall: () => onCall('postActing', () => delay(0)),
  prepare: () => prepare(delay(0)),
  redact: () => redact('secret'),
  retrieve: () => retrieve(found),
  rewriteQuestion: () => rewriteQuestion(),
  selectTools: () => selectTools({ select: () => Promise.resolve(['clock']) }),
  strictHistory: () => strictHistory(),
  suspendBelow: () => suspendBelow,
  transformChunks: () => transformChunks(identity),
  watch: () => watch(() => undefined),
};

describe.each(Object.entries(native))('%s', (_, create) => {
  for (const { name, run } of layerContract(create)) it(`Y7: ${name}`, run);
});

describe('withLongTermMemory', () => {
  for (const { name, run } of layerContract(() => remembered().flat())) {
    // It remembers the earlier call.
    if (name !== 'keeps no state between calls') it(`Y7: ${name}`, run);
  }
});

describe('a layer that interrupts its call', () => {
  const stopping: Layer = {
    name: 'stopping',
    step:
      ({ interruption }) =>
      (next) =>
      (step) =>
        step.kind === 'tool'
          ? next(step).pipe(tap(() => interruption.trigger({ message: 'Enough.' })))
          : next(step),
  };
  for (const { name, run } of layerContract(() => [interruptLayer, stopping]))
    it(`Y7: ${name}`, run);
});

describe('output', () => {
  const sample = { type: 'object', properties: { time: { type: 'string' } } } as const;
  const model = { ...scriptedModel(), stream$: () => from([text('{"time":"12:00"}'), finish()]) };
  const checks = layerContract(() => output(jsonSchema(sample)), { model });
  for (const { name, run } of checks) it(`Y7: ${name}`, run);
});
