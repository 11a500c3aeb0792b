import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { lastValueFrom } from 'rxjs';
import {
  createAgent,
  inProcessMemory,
  type MemoryFactory,
  type ModelChunk,
  type Reply,
  tool,
  toolOutput,
} from '../index.js';
import { jsonSchema } from '../schema/index.js';
import { record, type ScriptedAnswer, scriptedModel, text, toolCall } from '../testing/index.js';
import { runUntil, stepsIn } from './dying-driver.test-support.js';
import { type CallStoreDriver, createCallStore, inProcessCalls, journal } from './index.js';
import { type Session, sessions } from '../layers/sessions/index.js';
import { all, journalIn } from './stored-calls.test-support.js';

const rerun = { onUncertain: 'rerun' } as const;

/** What a model says in its turns: texts, and uses of tools. */
const turns = fc.array(
  fc.array(
    fc.oneof(
      fc.constantFrom('a', 'bc', '').map((it): ModelChunk => text(it)),
      fc
        .tuple(
          fc.constantFrom('add', 'fail', 'unknown', 'final', 'alone'),
          fc.constantFrom(1, 2, 'x'),
        )
        .map(([name, n]): ModelChunk => toolCall(name, { n })),
    ),
    { maxLength: 4 },
  ),
  { minLength: 1, maxLength: 5 },
);

const input = {
  type: 'object',
  properties: { n: { type: 'number' } },
  required: ['n'],
} as const;

const named = (name: string, run: (n: number) => unknown, exclusive = false) =>
  tool({ name, description: name, input: jsonSchema(input), exclusive, run: ({ n }) => run(n) });
const tools = [
  named('add', (n) => n + 1),
  named('alone', (n) => n, true),
  named('final', (n) => toolOutput({ content: `Final ${n}`, finalAnswer: n === 2 })),
  named('fail', (n) => {
    throw new Error(`No ${n}`);
  }),
];

/** It says at a turn what it says then, however often it is asked. */
const sessionOf = (
  driver: CallStoreDriver,
  memory: MemoryFactory,
  script: readonly (readonly ModelChunk[])[],
): Session => {
  const answer: ScriptedAnswer = ({ messages, tools = [] }) => {
    const done = messages.filter(({ role }) => role === 'assistant').length;
    return tools.length === 0 ? [text('Closing.')] : (script[done] ?? [text('End.')]);
  };
  const agent = createAgent({
    model: scriptedModel(...Array.from({ length: 40 }, () => answer)),
    tools,
    use: [journal(createCallStore(driver))],
    limits: { maxIterations: 4, parseBackoffMs: 0 },
  });
  return sessions(agent, { memory }).open('s');
};

/** Attempts after the first give their messages other ids. */
const plain = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value).replaceAll(/~\d+/gu, ''));

const timeless = ({ createdAt: _, elapsedMs: __, toolCalls, ...reply }: Reply): unknown =>
  plain({ ...reply, toolCalls: toolCalls.map(({ ms: ___, ...use }) => use) });

describe('a call whose process ends again and again', () => {
  it('S6, I1: comes to the same reply and the same conversation', async () => {
    await fc.assert(
      fc.asyncProperty(turns, fc.array(fc.nat(60), { maxLength: 3 }), async (script, cuts) => {
        const run$ = (driver: CallStoreDriver, memory: MemoryFactory = inProcessMemory()) =>
          sessionOf(driver, memory, script).call$('?', { callId: 'c' });
        const whole = inProcessMemory();
        const expected = await lastValueFrom(run$(inProcessCalls(), whole)).catch(String);
        const held = (memory: MemoryFactory) => lastValueFrom(memory('s').load$());
        const store = inProcessCalls();
        const memory = inProcessMemory();
        runUntil(store, cuts[0] ?? 3, (dying) => run$(dying, memory));
        fc.pre((await stepsIn(store)).includes('call'));
        for (const cut of cuts.slice(1)) {
          runUntil(store, cut, (dying) =>
            journalIn(dying, rerun).resume$(sessionOf(dying, memory, script), 'c'),
          );
        }
        const resumed$ = journalIn(store, rerun).resumeStream$(
          sessionOf(store, memory, script),
          'c',
        );
        const events = await record(resumed$).catch(String);
        const last = typeof events === 'string' ? undefined : events.at(-1);
        if (typeof expected === 'string') expect(events).toBe(expected);
        else {
          expect(last?.type).toBe('postCall');
          if (last?.type === 'postCall') expect(timeless(last.reply)).toEqual(timeless(expected));
        }
        expect(plain(await held(memory))).toEqual(plain(await held(whole)));
        const written = (await all(createCallStore(store).driver.read$('c'))).flat();
        const numbers = written.filter(({ kind }) => kind === 'event').map(({ seq }) => seq);
        expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
        const steps = await stepsIn(store);
        expect(new Set(steps).size).toBe(steps.length);
      }),
      { numRuns: 150 },
    );
  });
});
