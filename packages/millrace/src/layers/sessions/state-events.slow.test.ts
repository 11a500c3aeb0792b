import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import jsonPatch from 'fast-json-patch';
import {
  catchError,
  concatMap,
  defer,
  EMPTY,
  lastValueFrom,
  map,
  NEVER,
  type Observable,
  of,
  throwError,
  toArray,
} from 'rxjs';
import { createAgent } from '../../agent.js';
import type { AgentEvent, EventOf } from '../../events.js';
import { inputAndAnswer, windowMemory } from '../../memories/index.js';
import { createCallStore, inProcessCalls, journal } from '../../journal/index.js';
import type { Use } from '../../seams/layer.js';
import { inProcessMemory, type MemoryFactory } from '../../memories/in-process-memory.js';
import type { ModelChunk } from '../../models/model.js';
import { jsonSchema } from '../../schema/index.js';
import { only } from '../../operators/event-operators.js';
import {
  finish,
  record,
  scriptedModel,
  text,
  toolCall,
  verifyEvents,
} from '../../testing/index.js';
import { tool } from '../../tools/tool.js';
import { requireApproval } from '../approval.js';
import { suspend, suspensionsIn, toolResults } from '../../memories/suspend.js';
import { toolGroup } from '../../tools/tool-group.js';
import { afterEvent } from './state-after-events.js';
import { toJsonPatch } from './session-state.js';
import { sessions, type Session, type SessionState } from './index.js';
import { addTools } from '../select-tools.js';
import { kept$ } from '../../values/memory.js';
import { lineOf, pathTo } from '../../values/message-tree.js';

/** What a state becomes by an event of a call of its session, for whoever has only the events. */
const after = (
  before: SessionState,
  event: AgentEvent,
  callId: string,
  isWrittenDown: boolean,
): SessionState => {
  const state = afterEvent(before, event, { sessionId: 's', callId, isJournaled: isWrittenDown });
  if (event.type === 'stateChanged') expectPatched(before, event);
  return state;
};

const expectPatched = (
  before: SessionState,
  { name, state, patches }: EventOf<'stateChanged'>,
): void => {
  if (name !== 'groups' && name !== 'approvals') return;
  const patch = structuredClone(toJsonPatch(patches)) as Parameters<typeof jsonPatch.applyPatch>[1];
  const { newDocument } = jsonPatch.applyPatch<unknown>(structuredClone(before[name]), patch, true);
  expect(newDocument).toEqual(state);
};

/** Keeps few messages, in whole turns, and says what it drops. */
const forgetful =
  (inner: MemoryFactory, most: number): MemoryFactory =>
  (id) => {
    const memory = inner(id);
    return {
      ...memory,
      append$: (appended) =>
        memory.append$(appended).pipe(
          concatMap(() => memory.load$()),
          concatMap((all) => {
            const from = all.findIndex(
              ({ role }, index) => role === 'user' && index >= all.length - most,
            );
            if (from < 1 || suspensionsIn(all).length > 0) return EMPTY;
            const removed = all.slice(0, from).map((message) => message.id);
            const kept = appended.filter((message) => !removed.includes(message.id));
            return defer(() => memory.replace$?.(lineOf(all.slice(from))) ?? EMPTY).pipe(
              map(() => ({ appended: kept, removed })),
            );
          }),
        ),
    };
  };

const memories: Readonly<Record<string, () => MemoryFactory>> = {
  whole: inProcessMemory,
  window: () => windowMemory(inProcessMemory(), { turns: 1 }),
  inputAndAnswer: () => inputAndAnswer(inProcessMemory()),
  forgetful: () => forgetful(inProcessMemory(), 4),
};

const groups = ['a', 'b'] as const;
const named = fc.subarray([...groups]);
const use: fc.Arbitrary<ModelChunk> = fc.oneof(
  fc.record({ activate: named, deactivate: named }).map((input) => toolCall('manage_tools', input)),
  fc.constantFrom('yes', 'no', 'broken', 'interrupt').map((how) => toolCall('ask', { how })),
  fc.constantFrom('plain', 'fails', 'waits', 'toggles', 'below').map((name) => toolCall(name)),
);
const turn = fc.array(use, { minLength: 1, maxLength: 3 });
const call = fc.record({
  turns: fc.array(turn, { maxLength: 3 }),
  end: fc.constantFrom('answer', 'answer', 'answer', 'failure'),
  /** What the program does to the session before it. */
  before: fc.constantFrom('nothing', 'nothing', 'toggles', 'drops', 'adds', 'drops and adds'),
});
type Call = typeof call extends fc.Arbitrary<infer Value> ? Value : never;

const usage: ModelChunk = { type: 'usage', usage: { inputTokens: 3, outputTokens: 1 } };

/** Changes a session between two calls. */
const change = async (session: Session, how: string, index: number): Promise<void> => {
  const { memory, toolkit } = session;
  const run = (source$: Observable<unknown> = EMPTY) =>
    lastValueFrom(source$, { defaultValue: undefined });
  if (how === 'toggles') {
    toolkit.activate('b');
    toolkit.deactivate('a');
  }
  if (how.includes('drops')) {
    const kept = pathTo(await lastValueFrom(kept$(memory)));
    const from = kept.findIndex(({ role }, at) => role === 'user' && at > 0);
    const rest = from === -1 ? [] : kept.slice(from);
    if (suspensionsIn(kept).length === 0) await run(memory.replace$?.(lineOf(rest)));
  }
  if (how.includes('adds')) {
    const content = [{ type: 'text', text: 'By the program.' }] as const;
    await run(memory.append$([{ id: `added-${index}`, role: 'user', content }]));
  }
};

const answersOf = ({ turns, end }: Call) => [
  ...turns.map((chunks) => [text('Hm.'), ...chunks, usage, finish()]),
  end === 'answer' ? [text('Done.'), usage, finish()] : throwError(() => new Error('broken')),
];

const play = (calls: readonly Call[], memory: MemoryFactory, use: Use = []) => {
  const scripts = calls.map((it) => scriptedModel(...answersOf(it)));
  const plain = (name: string, run: () => unknown = () => name) =>
    tool({ name, description: name, run });
  const ask = (decides: () => Session | undefined) =>
    requireApproval(
      tool({
        name: 'ask',
        description: 'Asks.',
        input: jsonSchema({ type: 'object', properties: { how: { type: 'string' } } }),
        run: () => 'asked',
      }),
      ({ input: { how } }) => {
        if (how === 'broken') throw new Error('broken');
        if (how !== 'interrupt') return of(how === 'yes');
        decides()?.interrupt();
        return NEVER;
      },
    );
  const below = tool({
    name: 'below',
    description: 'Asks another.',
    run: (_input, parent) =>
      createAgent({
        name: 'below',
        model: scriptedModel([toolCall('ask', { how: 'yes' }), usage], [text('ok'), usage]),
        tools: [ask(() => undefined)],
      }).call$('?', { parent }),
  });
  const session: Session = sessions(
    createAgent({
      model: scriptedModel(),
      use,
      tools: [
        plain('plain'),
        plain('fails', () => {
          throw new Error('It fails.');
        }),
        plain('waits', () => suspend({ for: 'it' })),
        plain('toggles', () => {
          const { toolkit } = session;
          const { name, active } = toolkit.groups[0] ?? { name: 'a', active: false };
          if (active) toolkit.deactivate(name);
          else toolkit.activate(name);
        }),
        ask(() => session),
        below,
        ...groups.map((name) =>
          toolGroup({ name, description: name, tools: [plain(`in_${name}`)] }),
        ),
      ],
    }),
    { memory },
  ).open('s');
  const heard = (index: number, callId: string, waiting: readonly string[]) =>
    lastValueFrom(
      session
        .stream$(
          waiting.length === 0
            ? '?'
            : toolResults(Object.fromEntries(waiting.map((id) => [id, 'came']))),
          { callId, model: scripts[index] ?? scriptedModel() },
        )
        .pipe(
          verifyEvents(),
          catchError(() => EMPTY),
          toArray(),
        ),
    );
  return { session, heard };
};

describe('S5: the events of a call', () => {
  it('S4: make the state after it from the state before it, in every case', async () => {
    const seen = new Set<string>();
    await fc.assert(
      fc.asyncProperty(
        fc.array(call, { minLength: 1, maxLength: 4 }),
        fc.constantFrom(...Object.keys(memories)),
        fc.boolean(),
        async (calls, memory, isWrittenDown) => {
          const use = isWrittenDown ? [journal(createCallStore(inProcessCalls()))] : [];
          const { session, heard } = play(calls, memories[memory]?.() ?? inProcessMemory(), use);
          let before = await session.saveState();
          for (const index of calls.keys()) {
            const callId = `c${index}`;
            const waiting = suspensionsIn(before.messages).map(({ toolCall: { id } }) => id);
            await change(
              session,
              waiting.length > 0 ? 'nothing' : (calls[index]?.before ?? ''),
              index,
            );
            const events = await heard(index, callId, waiting);
            const rebuilt = events.reduce(
              (state, event) => after(state, event, callId, isWrittenDown),
              before,
            );
            const saved = await session.saveState();
            // A reply says what a call has cost, and one that fails has none.
            const hasReply = events.at(-1)?.type === 'postCall';
            expect(hasReply ? rebuilt : { ...rebuilt, usage: saved.usage }).toEqual(saved);
            for (const event of events) {
              const reason = event.type === 'postCall' ? ` ${event.reply.reason}` : '';
              seen.add(event.type === 'stateChanged' ? event.name : `${event.type}${reason}`);
            }
            before = saved;
          }
        },
      ),
      { numRuns: 150 },
    );
    expect([...seen]).toEqual(
      expect.arrayContaining([
        'groups',
        'approvals',
        'messagesAppended',
        'messagesRemoved',
        'error',
        'postCall answer',
        'postCall suspended',
        'postCall interrupted',
      ]),
    );
  });

  it('report what memory has of a call, late results too, when it has it', async () => {
    const { session } = play([], inProcessMemory());
    const model = scriptedModel([toolCall('waits', {}, 'w')], [text('Done.')]);
    await session.call('?', { callId: 'a', model });
    const events = await record(
      session.stream$(toolResults({ w: 'came' }), { callId: 'b', model }),
    );
    const appended = await lastValueFrom(of(...events).pipe(only('messagesAppended'), toArray()));
    expect(appended.map(({ messages }) => messages.map(({ id }) => id))).toEqual([
      ['b/input/0', 'b/1'],
    ]);
    expect(
      appended.every(
        ({ messages }) => Object.isFrozen(messages) && messages.every(Object.isFrozen),
      ),
    ).toBe(true);
  });

  it('report nothing that has not changed, and nothing of a call without a session', async () => {
    const { session } = play([], inProcessMemory());
    session.toolkit.activate('a');
    await session.call('?', { model: scriptedModel([text('ok')]) });
    const manages = () =>
      scriptedModel(
        [toolCall('manage_tools', { activate: ['a'], deactivate: ['b'] })],
        [text('ok')],
      );
    const events = await record(session.stream$('?', { model: manages() }));
    expect(events.map(({ type }) => type)).not.toContain('stateChanged');
    const search = toolGroup({ name: 'a', description: 'a', tools: [] });
    const bare = createAgent({
      model: scriptedModel([toolCall('manage_tools', { activate: ['a'] })], [text('ok')]),
      tools: [search],
    });
    const types = (await record(bare.stream$('?'))).map(({ type }) => type);
    expect(types).not.toContain('stateChanged');
    expect(types).not.toContain('messagesAppended');
  });

  it('report first what the program has done between two calls, once', async () => {
    const { session } = play([], inProcessMemory());
    const model = scriptedModel([text('one')], [text('two')], [text('three')]);
    await session.call('?', { model, callId: 'a' });
    session.toolkit.activate('a');
    session.toolkit.deactivate('a');
    session.toolkit.activate('b');
    const { memory } = session;
    const [first, ...rest] = await lastValueFrom(memory.load$());
    if (first === undefined) throw new Error('It holds nothing.');
    const edited = { ...first, content: [{ type: 'text', text: 'Hm?' }] } as typeof first;
    await lastValueFrom(memory.replace$?.(lineOf([edited, ...rest])) ?? EMPTY, {
      defaultValue: undefined,
    });
    const events = await record(session.stream$('?', { model, callId: 'b' }));
    expect(events.slice(0, 4)).toMatchObject([
      { type: 'preCall' },
      { type: 'messagesRemoved', ids: ['a/input/0', 'a/1'] },
      { type: 'messagesAppended', messages: [{ id: 'a/input/0' }, { id: 'a/1' }] },
      { type: 'stateChanged', name: 'groups', state: { a: false, b: true } },
    ]);
    expect(events[3]).toMatchObject({ patches: [{ op: 'replace', path: ['b'], value: true }] });
    const types = (await record(session.stream$('?', { model }))).map(({ type }) => type);
    expect(types).not.toContain('stateChanged');
    expect(types).not.toContain('messagesRemoved');
  });

  it('report nothing of a state that is loaded, because the program knows it', async () => {
    const { session } = play([], inProcessMemory());
    session.toolkit.activate('b');
    await session.loadState(await session.saveState());
    const events = await record(session.stream$('?', { model: scriptedModel([text('ok')]) }));
    expect(events.map(({ type }) => type)).not.toContain('stateChanged');
  });

  it('report what the program does while they run, when it does it', async () => {
    const { session } = play([], inProcessMemory());
    const note = tool({
      name: 'note',
      description: 'Notes.',
      run: () =>
        session.memory.append$([
          { id: 'noted', role: 'user', content: [{ type: 'text', text: 'Noted.' }] },
        ]),
    });
    const model = scriptedModel([toolCall('note')], [text('ok')]);
    const events = await record(session.stream$('?', { model, use: [addTools(note)] }));
    const told = events.filter((event) => event.type === 'messagesAppended');
    expect(told.map(({ iteration, messages }) => [iteration, messages[0]?.id])[0]).toEqual([
      1,
      'noted',
    ]);
  });

  it('report the groups and the approvals with patches', async () => {
    const { session } = play([], inProcessMemory());
    const model = scriptedModel(
      [toolCall('manage_tools', { activate: ['b'] })],
      [toolCall('ask', { how: 'no' }, 'x')],
      [text('ok')],
    );
    const events = await record(session.stream$('?', { callId: 'c', model }));
    const pending = {
      callId: 'c',
      toolCall: { ...toolCall('ask', { how: 'no' }, 'x'), type: 'tool_call' },
    };
    expect(events.filter(({ type }) => type === 'stateChanged')).toMatchObject([
      {
        iteration: 1,
        name: 'groups',
        state: { a: false, b: true },
        patches: [{ op: 'replace', path: ['b'], value: true }],
      },
      {
        iteration: 2,
        name: 'approvals',
        state: [pending],
        patches: [{ op: 'add', path: [0], value: pending }],
      },
      { iteration: 2, name: 'approvals', state: [], patches: [{ op: 'remove', path: [0] }] },
    ]);
  });
});
