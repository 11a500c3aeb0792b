import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { defer, lastValueFrom, mergeMap, type Observable, type SchedulerLike, timer } from 'rxjs';
import { createAgent, inProcessMemory, type ModelChunk, textOf, selectTools } from '../../index.js';
import { marbles, record, scriptedModel, text, toolCall } from '../../testing/index.js';
import { inProcessLongTermMemory, type LongTermMemory, withLongTermMemory } from './index.js';
import type { LongTermMemoryMode } from './memory-settings.js';
import {
  ann,
  bob,
  everythingTold,
  forAnn,
  forBob,
  heldOf,
  look,
  remembering,
  shownTo,
} from './memories.test-support.js';
import { sessions } from '../sessions/index.js';

const namesIn = (model: ReturnType<typeof scriptedModel>): readonly string[] =>
  model.requests[0]?.tools?.map(({ name }) => name) ?? [];

describe('withLongTermMemory, agent', () => {
  it('G3: gives the model tools, and neither recalls nor records by itself', async () => {
    const memory = remembering('Likes tea.');
    const model = scriptedModel([text('?')]);
    await createAgent(withLongTermMemory({ model, tools: [look] }, { memory, mode: 'agent' })).call(
      'Which tea?',
      forAnn,
    );
    expect(namesIn(model)).toEqual(['look', 'record_memory', 'retrieve_memory']);
    expect(shownTo(model)).toEqual(['Which tea?']);
    expect(await heldOf(memory)).toEqual(['Likes tea.']);
  });

  it('G3: what the model records is of the user of the call, and is found again', async () => {
    const memory = inProcessLongTermMemory();
    const model = scriptedModel(
      [
        toolCall('record_memory', { text: 'Likes tea.' }),
        toolCall('record_memory', { text: 'likes TEA.' }),
      ],
      [text('Stored.')],
      [toolCall('retrieve_memory', { query: 'tea' })],
      [text('Tea.')],
      [toolCall('retrieve_memory', { query: 'tea' })],
      [text('?')],
    );
    const agent = createAgent(withLongTermMemory({ model }, { memory, mode: 'agent' }));
    await sessions(agent)
      .open('one')
      .call('I like tea.', { ...forAnn, callId: 'c' });
    expect(shownTo(model, 1).at(-1)).toBe('Stored.\nIt is already stored.');
    const [held] = await lastValueFrom(memory.recall$(ann, { text: '' }));
    expect(held).toMatchObject({
      kind: 'fact',
      scope: ann,
      metadata: { callId: 'c', agent: 'agent', sessionId: 'one' },
    });
    await agent.call('What do I like?', forAnn);
    expect(shownTo(model, 3).at(-1)).toMatch(
      /never as instructions.*\n\nMemory \(fact, .*\):\n> Likes tea\.$/su,
    );
    await agent.call('What do I like?', forBob);
    expect(shownTo(model, 5).at(-1)).toBe('No memories were found.');
  });

  it('I12: no argument of the model names anyone', async () => {
    const memory = remembering('Ann likes tea.');
    const others = { userId: 'ann', scope: ann, sessionId: 's', metadata: { userId: 'ann' } };
    const model = scriptedModel(
      [
        toolCall('retrieve_memory', { query: 'tea', ...others }),
        toolCall('record_memory', { text: 'Bob was here.', ...others }),
        toolCall('forget_memory', { ids: ['memory-1'], ...others }),
      ],
      [text('?')],
    );
    const settings = { memory, mode: 'agent', forgetTool: true } as const;
    await createAgent(withLongTermMemory({ model }, settings)).call('Tea?', forBob);
    expect(everythingTold(model)).not.toContain('likes tea');
    for (const { inputSchema } of model.requests[0]?.tools ?? []) {
      expect(JSON.stringify(inputSchema)).not.toMatch(/user|scope|session/iu);
    }
    expect(await heldOf(memory)).toEqual(['Ann likes tea.']);
    expect(await heldOf(memory, bob)).toEqual(['Bob was here.']);
  });

  it('G3: forgets if it may, by the ids that it was shown', async () => {
    const memory = remembering('Likes tea.', 'Lives in Oslo.');
    const model = scriptedModel(
      [toolCall('retrieve_memory', { query: 'tea' })],
      [toolCall('forget_memory', { ids: ['memory-1', 'memory-9'] })],
      [text('Gone.')],
    );
    const settings = { memory, mode: 'agent', forgetTool: true } as const;
    await createAgent(withLongTermMemory({ model }, settings)).call('Forget tea.', forAnn);
    expect(namesIn(model)).toEqual(['record_memory', 'retrieve_memory', 'forget_memory']);
    expect(shownTo(model, 1).at(-1)).toContain('Memory "memory-1" (fact, 1970-01-01):\n> Likes');
    expect(shownTo(model, 2).at(-1)).toBe('Deleted: 1.');
    expect(await heldOf(memory)).toEqual(['Lives in Oslo.']);
  });

  it('I8: what a tool has recalled is shown for the call, and not kept with the conversation', async () => {
    const conversations = inProcessMemory();
    const model = scriptedModel(
      [toolCall('retrieve_memory', { query: 'tea' }), toolCall('look', { at: 'home' })],
      [toolCall('look', { at: 'sea' })],
      [text('Done.')],
      [text('?')],
    );
    const settings = { memory: remembering('Likes tea.'), mode: 'agent' } as const;
    const agent = createAgent(withLongTermMemory({ model, tools: [look] }, settings));
    await sessions(agent, { memory: conversations }).open('s').call('Which tea?', forAnn);
    for (const at of [1, 2]) expect(shownTo(model, at).join()).toContain('Likes tea.');
    await sessions(agent, { memory: conversations }).open('s').call('Well?', forAnn);
    expect(shownTo(model, 3)[2]).toBe(
      '[Recalled memories are not stored here. Retrieve them again if needed.]\nSeen at home.',
    );
    expect(JSON.stringify(await lastValueFrom(conversations('s').load$()))).not.toContain('Likes');
  });

  it('G3: its tools are among those that a selection pins, and those that calls are given', async () => {
    const memory = remembering('Likes tea.');
    const model = scriptedModel([text('?')], [text('?')]);
    const settings = { memory, mode: 'both' } as const;
    const use = [selectTools({ select: () => ['look'], maxTools: 2 })];
    const selecting = withLongTermMemory({ model, tools: [look], use }, settings);
    await createAgent(selecting).call('Tea?', forAnn);
    expect(namesIn(model)).toEqual(['record_memory', 'retrieve_memory']);
    const given = withLongTermMemory({ model, tools: [look] }, settings);
    await createAgent(given).call('Tea?', forAnn);
    expect(model.requests[1]?.tools).toHaveLength(3);
  });

  it('G3: both: recalls, records and has tools, and records no run of these', async () => {
    const memory = remembering('Likes tea.');
    const model = scriptedModel(
      [
        toolCall('retrieve_memory', { query: 'tea' }),
        toolCall('record_memory', { text: 'Wants it hot.' }),
        toolCall('look', { at: 'home' }),
      ],
      [text('Hot.')],
    );
    const agent = createAgent(
      withLongTermMemory({ model, tools: [look] }, { memory, mode: 'both' }),
    );
    await agent.call('Hot tea!', forAnn);
    expect(shownTo(model)[0]).toContain('> Likes tea.');
    expect([...(await heldOf(memory))].sort()).toEqual([
      'Likes tea.',
      'Wants it hot.',
      'look was called with:\n  {"at":"home"}\nit returned:\n  Seen at home.',
      'user:\n  Hot tea!\nassistant:\n  Hot.',
    ]);
  });
});

const modes: readonly LongTermMemoryMode[] = ['static', 'agent', 'both'];

const uses: Readonly<Record<string, ModelChunk>> = {
  retrieve: toolCall('retrieve_memory', { query: 'mark' }),
  list: toolCall('retrieve_memory', { query: '' }),
  record: toolCall('record_memory', { text: 'Something else.' }),
  steal: toolCall('retrieve_memory', { query: 'mark', userId: 'bob', scope: { userId: 'bob' } }),
  forget: toolCall('forget_memory', { ids: ['memory-1'], userId: 'bob' }),
  look: toolCall('look', { at: 'home' }),
  fail: toolCall('look', { at: 'nowhere' }),
  unknown: toolCall('nothing', {}),
};

/** What a model asks for in the turns of a call, before it answers. */
const script = fc.array(
  fc.array(fc.constantFrom(...Object.keys(uses)), { minLength: 1, maxLength: 3 }),
  { maxLength: 3 },
);

const answersOf = (turns: readonly (readonly string[])[]): readonly (readonly ModelChunk[])[] => [
  ...turns.map((names) => names.flatMap((name) => uses[name] ?? [])),
  [text('Done.')],
];

describe('withLongTermMemory, no matter what the model does', () => {
  it('I8: what was recalled is neither stored nor recorded again, in any mode', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...modes),
        fc.array(script, { minLength: 1, maxLength: 3 }),
        async (mode, calls) => {
          const memory = remembering('The mark is sesame.');
          const conversations = inProcessMemory();
          const model = scriptedModel(...calls.flatMap(answersOf));
          const agent = createAgent(withLongTermMemory({ model, tools: [look] }, { memory, mode }));
          for (const _ of calls) {
            await record(
              sessions(agent, { memory: conversations })
                .open('s')
                .stream$('What is the mark?', forAnn),
            );
          }
          const stored = await lastValueFrom(conversations('s').load$());
          expect(stored.length).toBeGreaterThanOrEqual(calls.length * 2);
          expect(JSON.stringify(stored)).not.toContain('sesame');
          const marked = (await heldOf(memory)).filter((it) => it.includes('sesame'));
          expect(marked).toEqual(['The mark is sesame.']);
          if (mode !== 'agent') expect(shownTo(model)[0]).toContain('> The mark is sesame.');
        },
      ),
      { numRuns: 60 },
    );
  });

  const waits = fc.array(fc.integer({ min: 0, max: 5 }), { minLength: 1, maxLength: 12 });

  it('G3: calls of two users at the same time see and write their own memory only, in any order', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...modes),
        fc.tuple(script, script),
        fc.tuple(waits, waits),
        (mode, scripts, delays) => {
          marbles(({ scheduler, flush }) => {
            const inner = inProcessLongTermMemory({ clock: scheduler });
            inner.record$(ann, [{ text: 'The mark is of ann.' }]).subscribe();
            inner.record$(bob, [{ text: 'The mark is of bob.' }]).subscribe();
            const memory = slow(inner, delays.flat(), scheduler);
            const models = scripts.map((turns) => scriptedModel(...answersOf(turns)));
            // One agent for both, as on a server.
            const agent = createAgent(
              withLongTermMemory(
                { model: models[0] ?? scriptedModel(), tools: [look] },
                { memory, mode, forgetTool: true },
              ),
            );
            const replies = ['ann', 'bob'].map((userId, at) => {
              const own: string[] = [];
              const model = models[at] ?? scriptedModel();
              const wait = delays[at]?.[0] ?? 0;
              timer(wait, scheduler)
                .pipe(
                  mergeMap(() =>
                    sessions(agent).open(userId).call$(`What is the mark? I am ${userId}`, {
                      model,
                      metadata: { userId },
                      scheduler,
                    }),
                  ),
                )
                .subscribe((reply) => own.push(textOf(reply)));
              return own;
            });
            flush();
            expect(replies).toEqual([['Done.'], ['Done.']]);
            for (const [at, other] of ['bob', 'ann'].entries()) {
              expect(
                JSON.stringify(models[at]?.requests.map(({ messages }) => messages)),
              ).not.toMatch(new RegExp(`of ${other}|am ${other}`, 'u'));
            }
            for (const [scope, other] of [
              [ann, 'bob'],
              [bob, 'ann'],
            ] as const) {
              inner.recall$(scope, { text: '', limit: 99 }).subscribe((held) => {
                expect(held.map((it) => it.text).join()).not.toMatch(
                  new RegExp(`of ${other}|am ${other}`, 'u'),
                );
                if (mode !== 'agent') expect(held.length).toBeGreaterThan(0);
              });
            }
          });
        },
      ),
      { numRuns: 60 },
    );
  });
});

/** A memory that takes its time, as long as the next of these numbers says. */
const slow = (
  inner: LongTermMemory,
  waits: readonly number[],
  scheduler: SchedulerLike,
): LongTermMemory => {
  let nth = 0;
  const later = <T>(source$: Observable<T>): Observable<T> =>
    defer(() => {
      const wait = waits[nth % waits.length] ?? 0;
      nth += 1;
      return wait === 0 ? source$ : timer(wait, scheduler).pipe(mergeMap(() => source$));
    });
  return {
    record$: (scope, memories) => later(inner.record$(scope, memories)),
    recall$: (scope, query) => later(inner.recall$(scope, query)),
    forget$: (scope, which) => later(inner.forget$(scope, which)),
  };
};
