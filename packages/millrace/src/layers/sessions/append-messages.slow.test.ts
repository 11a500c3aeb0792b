import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { concat, defer, ignoreElements, lastValueFrom, map, NEVER, of, throwError } from 'rxjs';
import { type Agent, createAgent } from '../../agent.js';
import { createCallStore, inProcessCalls, journal } from '../../journal/index.js';
import { jsonSchema } from '../../schema/index.js';
import { finish, text, toolCall } from '../../testing/index.js';
import { tool } from '../../tools/tool.js';
import { toolGroup } from '../../tools/tool-group.js';
import { toolOutput } from '../../values/tool-output.js';
import {
  inProcessSessions,
  keepSessions,
  type KeptSession,
  type SessionState,
  type SessionStore,
} from './index.js';

const search = tool({ name: 'search', description: 'Searches.', run: () => 'found' });
const add = tool({
  name: 'add',
  description: 'Adds.',
  input: jsonSchema({ type: 'object', properties: { a: { type: 'number' } } }),
  run: () =>
    toolOutput({ content: '2', details: { by: 'head', when: new Date(0), no: undefined } }),
});

/** Calls a tool for a question with 'add', fails for one with 'fail', and never answers one with 'wait'. */
const answering = (): Agent =>
  createAgent({
    model: {
      name: 'answering',
      stream$: ({ messages }) => {
        const last = JSON.stringify(messages.at(-1)?.content);
        if (last.includes('wait')) return NEVER;
        if (last.includes('fail')) return throwError(() => new Error('broken'));
        return last.includes('add')
          ? of(toolCall('add', { a: 1 }), finish())
          : of(text(`Answer ${messages.length}.`), finish());
      },
    },
    tools: [add, toolGroup({ name: 'web', description: 'The web.', tools: [search] })],
  });

const stateIn = async (store: SessionStore): Promise<SessionState | undefined> =>
  (await lastValueFrom(store.load$('s')))?.state as SessionState | undefined;

/** A store that counts what is written to it. */
const counting = (inner: SessionStore) => {
  const writes: { readonly how: 'save' | 'append'; readonly bytes: number }[] = [];
  const write = (how: 'save' | 'append', value: object): void => {
    writes.push({ how, bytes: JSON.stringify(value).length });
  };
  const store: SessionStore = {
    ...inner,
    save$: (id, state, expected) =>
      defer(() => {
        write('save', state);
        return inner.save$(id, state, expected);
      }),
    append$: (id, change, expected) =>
      defer(() => {
        write('append', change);
        return inner.append$?.(id, change, expected) ?? NEVER;
      }),
  };
  return { store, writes, take: () => writes.splice(0).map(({ how }) => how) };
};

/** A store whose next write fails, before or after it has an effect. */
const failing = (inner: SessionStore) => {
  let next: 'before' | 'after' | undefined;
  const failure$ = throwError(() => new Error('disk full'));
  const around = (write: () => ReturnType<SessionStore['save$']>) =>
    defer(() => {
      const how = next;
      next = undefined;
      if (how === 'before') return failure$;
      return how === 'after' ? concat(write().pipe(ignoreElements()), failure$) : write();
    });
  const store: SessionStore = {
    ...inner,
    save$: (...given) => around(() => inner.save$(...given)),
    ...(inner.append$ && {
      append$: (...given) => around(() => inner.append$?.(...given) ?? NEVER),
    }),
  };
  return { store, fail: (how: 'before' | 'after') => (next = how) };
};

const idsIn = async ({ memory }: KeptSession): Promise<readonly string[]> => {
  const { entries } = await lastValueFrom(memory.all$?.() ?? NEVER);
  return entries.map(({ message }) => message.id);
};

/** Ends of calls, where a branch may begin. */
const endsIn = async (session: KeptSession): Promise<readonly string[]> => {
  const ids = await idsIn(session);
  return ids.filter((id, at) => id.split('/')[0] !== ids[at + 1]?.split('/')[0]);
};

const done = async (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'done',
    (error: unknown) => String(Reflect.get(Object(error), 'code')),
  );

const operation = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constant('call' as const),
      text: fc.constantFrom('hello', 'add', 'fail'),
    }),
  },
  fc.record({
    type: fc.constantFrom('edit', 'head', 'remove', 'redact', 'loadState' as const),
    at: fc.nat(20),
  }),
  fc.record({
    type: fc.constantFrom(
      'abort',
      'clear',
      'rename',
      'group',
      'append',
      'save',
      'reopen',
      'other' as const,
    ),
  }),
  fc.record({
    type: fc.constant('failure' as const),
    how: fc.constantFrom('before', 'after' as const),
  }),
);
type Operation = typeof operation extends fc.Arbitrary<infer Value> ? Value : never;

/** Plays operations on a session, and saves it after each. Returns how each ended, and what the store had then. */
const play = async (
  operations: readonly Operation[],
  inner: SessionStore,
  withJournal: boolean,
): Promise<readonly (readonly [string, string, unknown])[]> => {
  const { store, fail } = failing(inner);
  const agent = answering();
  const options = withJournal ? { journal: journal(createCallStore(inProcessCalls())) } : {};
  const kept = keepSessions(agent, store, options);
  const other = keepSessions(answering(), inner);
  let session = await kept.open('s');
  const states: unknown[] = [];
  const act = async (it: Operation, index: number): Promise<unknown> => {
    const callId = `c${index}`;
    const ids = await idsIn(session);
    const at = 'at' in it ? ids[it.at % Math.max(ids.length, 1)] : undefined;
    switch (it.type) {
      case 'call':
        return session.call(it.text, { callId });
      case 'edit': {
        const ends = await endsIn(session);
        const end = ends[it.at % Math.max(ends.length, 1)] ?? null;
        return session.call('again', {
          callId,
          after: end,
          ...(at !== undefined && { replaces: at }),
        });
      }
      case 'head':
        return at && lastValueFrom(session.memory.moveHead$?.(at) ?? NEVER);
      case 'remove':
        return at && lastValueFrom(session.memory.remove$?.(at) ?? NEVER);
      case 'redact': {
        const tree = await lastValueFrom(session.memory.all$?.() ?? NEVER);
        const entries = tree.entries.map((entry) =>
          entry.message.id === at && entry.message.role === 'user'
            ? {
                ...entry,
                message: { ...entry.message, content: [{ type: 'text' as const, text: '…' }] },
              }
            : entry,
        );
        return lastValueFrom(
          (session.memory.replace$?.({ ...tree, entries }) ?? NEVER).pipe(map(() => 0)),
          { defaultValue: 0 },
        );
      }
      case 'loadState':
        return session.loadState(states[it.at % Math.max(states.length, 1)] ?? {});
      case 'abort': {
        const running = session.call$('wait', { callId }).subscribe({ error: () => undefined });
        return running.unsubscribe();
      }
      case 'append':
        return lastValueFrom(
          session.memory.append$([{ id: `m${index}`, role: 'user', content: [] }]),
        );
      case 'clear':
        return session.clear();
      case 'rename':
        return session.rename(`Title ${index}`);
      case 'group':
        return session.toolkit.activate('web');
      case 'save':
        return session.save();
      case 'reopen':
        await session.close();
        return (session = await kept.open('s'));
      case 'other': {
        const theirs = await other.open('s');
        await theirs.call('theirs', { callId });
        return theirs.close();
      }
      case 'failure':
        fail(it.how);
        return session.save();
    }
  };
  const seen: (readonly [string, string, unknown])[] = [];
  for (const [index, it] of operations.entries()) {
    const how = await done(act(it, index));
    const saved = await done(session.save());
    if (saved === 'conflict') session = await kept.open('s');
    const state = await stateIn(inner);
    states.push(state);
    seen.push([how, saved, state]);
    const open = keepSessions(answering(), inner).open('s');
    if (state !== undefined) expect(await (await open).saveState()).toEqual(state);
  }
  return seen;
};

const call = (text: 'hello' | 'add' | 'fail' = 'hello'): Operation => ({ type: 'call', text });

/** Schedules with each usual outcome, however few runs there are. */
const examples: [Operation[], boolean][] = [
  [[call(), call('add'), { type: 'edit', at: 1 }, { type: 'head', at: 1 }, call('fail')], true],
  [[call(), { type: 'edit', at: 0 }, { type: 'remove', at: 1 }, { type: 'abort' }, call()], false],
  [[call(), { type: 'redact', at: 0 }, { type: 'append' }, { type: 'loadState', at: 0 }], true],
  [[call(), { type: 'rename' }, { type: 'group' }, { type: 'clear' }, { type: 'reopen' }], true],
  [[call(), { type: 'failure', how: 'before' }, call(), { type: 'failure', how: 'after' }], false],
  [[call(), { type: 'other' }, call(), { type: 'reopen' }, { type: 'save' }, call('add')], true],
];

/** The in-process store with whole saves only. */
const wholeSaves = (): SessionStore => {
  const { append$: _, ...store } = inProcessSessions();
  return store;
};

describe('S4: a kept session appends its messages', () => {
  it('has the same states in a store that appends and in one that does not', async () => {
    const seen = new Set<string>();
    await fc.assert(
      fc.asyncProperty(
        fc.array(operation, { minLength: 1, maxLength: 12 }),
        fc.boolean(),
        async (operations, withJournal) => {
          const { store, writes } = counting(inProcessSessions());
          const appended = await play(operations, store, withJournal);
          expect(appended).toEqual(await play(operations, wholeSaves(), withJournal));
          appended.forEach(([how, saved], at) =>
            seen.add(`${operations[at]?.type} ${how} ${saved}`),
          );
          writes.forEach(({ how }) => seen.add(how));
        },
      ),
      { numRuns: 300, examples },
    );
    expect([...seen]).toEqual(
      expect.arrayContaining([
        'save',
        'append',
        'other done conflict',
        'failure store conflict',
        'failure store done',
        'edit done done',
        'head done done',
        'remove done done',
        'redact done done',
        'loadState done done',
        'clear done done',
        'reopen done done',
        'abort done done',
      ]),
    );
  });

  it.each<[string, (session: KeptSession) => Promise<unknown>, 'save' | 'append']>([
    ['a call', (session) => session.call('hello'), 'append'],
    ['a call with tools', (session) => session.call('add'), 'append'],
    ['a call on another branch', (session) => session.call('hello', { after: null }), 'append'],
    ['a new title', async (session) => session.rename('A'), 'append'],
    [
      'another head',
      async (session) =>
        lastValueFrom(session.memory.moveHead$?.((await idsIn(session))[0] ?? '') ?? NEVER),
      'append',
    ],
    [
      'a removal',
      async (session) =>
        lastValueFrom(session.memory.remove$?.((await idsIn(session))[2] ?? '') ?? NEVER),
      'save',
    ],
    [
      'a removal and as many new messages',
      async (session) => {
        await lastValueFrom(session.memory.remove$?.((await idsIn(session))[2] ?? '') ?? NEVER);
        await lastValueFrom(
          session.memory.append$([
            { id: 'm0', role: 'user', content: [] },
            { id: 'm1', role: 'user', content: [] },
          ]),
        );
      },
      'save',
    ],
    [
      'an equal state that is loaded',
      async (session) => session.loadState(await session.saveState()),
      'save',
    ],
    [
      'a cleared conversation',
      (session) =>
        session.memory.replace$
          ? lastValueFrom(session.memory.replace$({ entries: [], head: null }).pipe(map(() => 0)), {
              defaultValue: 0,
            })
          : Promise.resolve(),
      'save',
    ],
  ])('after %s', async (_name, change, expected) => {
    const { store, take } = counting(inProcessSessions());
    const session = await keepSessions(answering(), store).open('s');
    await session.call('one');
    await session.call('two');
    expect(take()).toEqual(['save', 'append']);
    await change(session);
    await session.save();
    expect([...new Set(take())]).toEqual([expected]);
    await session.call('three');
    expect(take()).toEqual(['append']);
    expect(await (await keepSessions(answering(), store).open('s')).saveState()).toEqual(
      await session.saveState(),
    );
  });

  it('after it was opened again', async () => {
    const { store, take } = counting(inProcessSessions());
    const kept = keepSessions(answering(), store);
    const first = await kept.open('s');
    await first.call('one');
    await first.close();
    take();
    await (await kept.open('s')).call('two');
    await (await keepSessions(answering(), store).open('s')).call('three');
    expect(take()).toEqual(['append', 'append']);
  });

  it('saves the whole state once after a save that failed, because it is unknown what the store has', async () => {
    const { store, take } = counting(inProcessSessions());
    const { store: failed, fail } = failing(store);
    const session = await keepSessions(answering(), failed).open('s');
    await session.call('one');
    fail('before');
    await expect(session.call('two')).rejects.toMatchObject({ code: 'store' });
    await session.call('three');
    await session.call('four');
    expect(take()).toEqual(['save', 'save', 'append']);
    expect((await stateIn(store))?.messages).toHaveLength(8);
  });

  it.each([false, true])(
    'writes what a call adds, however long the conversation is (journal: %s)',
    async (withJournal) => {
      const { store, writes } = counting(inProcessSessions());
      const options = withJournal ? { journal: journal(createCallStore(inProcessCalls())) } : {};
      const session = await keepSessions(answering(), store, options).open('s');
      for (let calls = 0; calls < 400; calls += 1) {
        await done(session.call(calls % 50 === 49 ? 'fail' : 'hello'));
      }
      const bytesOf = (calls: number): number =>
        writes.slice(0, calls).reduce((sum, write) => sum + write.bytes, 0);
      const { length } = writes;
      expect(writes.filter(({ how }) => how === 'save')).toHaveLength(1);
      const exponent = Math.log2(bytesOf(length) / bytesOf(length / 8)) / 3;
      expect(exponent).toBeLessThan(1.05);
      const again = await keepSessions(answering(), store).open('s');
      expect(await again.saveState()).toEqual(await session.saveState());
    },
  );
});
