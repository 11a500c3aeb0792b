import { describe, expect, it } from '@jest/globals';
import {
  BehaviorSubject,
  concatMap,
  first,
  firstValueFrom,
  from,
  lastValueFrom,
  NEVER,
  type Observable,
  of,
  VirtualTimeScheduler,
} from 'rxjs';
import { createAgent } from '../../agent.js';
import { createCallStore, inProcessCalls, journal } from '../../journal/index.js';
import { scriptedModel, text } from '../../testing/index.js';
import { textOf } from '../../values/message.js';
import { noUsage } from '../../values/usage.js';
import { tool } from '../../tools/tool.js';
import { toolGroup } from '../../tools/tool-group.js';
import { inProcessSessions, keepSessions, type KeptSession, type SessionStore } from './index.js';

const named = (name: string) => tool({ name, description: 'Looks.', run: () => 'Seen.' });

/** A session with a title, an active group and a call, in a store that can be slow or broken. */
const setUp = async () => {
  const scheduler = new VirtualTimeScheduler();
  scheduler.maxFrames = 1;
  const inner = inProcessSessions();
  /** Reads and writes wait while it is closed. */
  const gate$ = new BehaviorSubject<'open' | 'closed' | 'broken'>('open');
  const gate = {
    open: () => gate$.next('open'),
    close: () => gate$.next('closed'),
    fail: () => {
      gate$.next('broken');
      gate$.next('open');
    },
  };
  const gated = <T>(work: () => Observable<T> | undefined): Observable<T> =>
    gate$.pipe(
      first((it) => it !== 'closed'),
      concatMap((it) => {
        if (it === 'broken') throw new Error('disk full');
        return work() ?? NEVER;
      }),
    );
  const store: SessionStore = {
    ...inner,
    load$: (id) => gated(() => inner.load$(id)),
    save$: (...given) => gated(() => inner.save$(...given)),
    append$: (...given) => gated(() => inner.append$?.(...given)),
  };
  const groups = ['web', 'mail'].map((name) =>
    toolGroup({ name, description: 'Some.', tools: [named(`${name}_look`)] }),
  );
  const answers = Array.from({ length: 9 }, () => [text('Done.')]);
  const calls = journal(createCallStore(inProcessCalls()));
  const agent = createAgent({ model: scriptedModel(...answers), tools: groups, use: [calls] });
  const kept = keepSessions(agent, store, { journal: calls, scheduler, idleMs: 100 });
  const session = await kept.open('s');
  await session.call('One', { callId: 'a' });
  session.rename('Before');
  session.toolkit.activate('web');
  /** Passes so many milliseconds, and lets what they start end. */
  const pass = async (ms: number): Promise<void> => {
    scheduler.maxFrames = scheduler.frame + ms;
    scheduler.flush();
    scheduler.frame = scheduler.maxFrames;
    await new Promise((resolve) => setImmediate(resolve));
  };
  const stored = async () =>
    (await firstValueFrom(inner.load$('s')))?.state as Record<string, unknown>;
  return { session, kept, pass, stored, gate, store };
};

const activeIn = ({ toolkit }: Pick<KeptSession, 'toolkit'>): readonly string[] =>
  toolkit.groups.filter(({ active }) => active).map(({ name }) => name);

type Member = (session: KeptSession) => unknown;

const state = {
  version: 1,
  messages: [],
  groups: { mail: true },
  approvals: [],
  usage: noUsage,
  interrupted: false,
};
const known = { groups: { web: true, mail: false }, title: 'Before' };
const twice = (it: KeptSession) => it.saveState().then(({ messages }) => messages.length);

/** Every member of a handle, used when its session was closed because it was idle, and what comes of it. */
const members: Readonly<Record<keyof KeptSession, readonly [Member, unknown]>> = {
  id: [(it) => it.id, 's'],
  title: [(it) => it.title, 'Before'],
  version: [(it) => it.version, 2],
  queue: [(it) => [it.queue.calls, it.queue.clear()], [[], 0]],
  interrupt: [(it) => it.interrupt(), false],
  steer: [(it) => it.steer('Now'), { status: 'notDelivered', why: 'notRunning' }],
  steer$: [(it) => lastValueFrom(it.steer$('Now')), { status: 'notDelivered', why: 'notRunning' }],
  toolkit: [
    (it) => {
      const { toolkit } = it;
      const before = activeIn(it);
      toolkit.activate('mail');
      toolkit.deactivate('web');
      toolkit.add(named('own'));
      return [before, activeIn(it), [...toolkit.names].includes('own')];
    },
    [['web'], ['mail'], true],
  ],
  rename: [
    (it) => {
      it.rename('After');
      return it.title;
    },
    'After',
  ],
  events$: [
    async (it) => {
      const seen: string[] = [];
      const events = it.events$.subscribe(({ type }) => seen.push(type));
      await it.call('Two');
      events.unsubscribe();
      return [seen[0], seen.at(-1)];
    },
    ['preCall', 'postCall'],
  ],
  memory: [async (it) => (await lastValueFrom(it.memory.load$())).length, 2],
  call: [(it) => it.call('Two').then(() => twice(it)), 4],
  call$: [(it) => lastValueFrom(it.call$('Two')).then(() => twice(it)), 4],
  stream$: [(it) => lastValueFrom(it.stream$('Two')).then(() => twice(it)), 4],
  stream: [(it) => lastValueFrom(from(it.stream('Two'))).then(() => twice(it)), 4],
  asOperator: [(it) => lastValueFrom(of('Two').pipe(it.asOperator())).then(() => twice(it)), 4],
  resume: [(it) => it.resume(), undefined],
  resume$: [(it) => lastValueFrom(it.resume$('a')).then(textOf), 'Done.'],
  resumeStream$: [
    (it) => lastValueFrom(it.resumeStream$('a')).then(({ type }) => type),
    'postCall',
  ],
  saveState: [(it) => it.saveState(), expect.objectContaining(known)],
  saveState$: [(it) => lastValueFrom(it.saveState$()), expect.objectContaining(known)],
  loadState: [
    (it) => it.loadState(state).then(() => [it.title, activeIn(it)]),
    [undefined, ['mail']],
  ],
  loadState$: [
    (it) => lastValueFrom(it.loadState$(state), { defaultValue: 0 }).then(() => activeIn(it)),
    ['mail'],
  ],
  clear: [(it) => it.clear().then(() => [it.title, activeIn(it)]), ['Before', []]],
  clear$: [
    (it) => lastValueFrom(it.clear$(), { defaultValue: 0 }).then(() => [it.title, activeIn(it)]),
    ['Before', []],
  ],
  cancelSuspended: [(it) => it.cancelSuspended(), 0],
  cancelSuspended$: [(it) => lastValueFrom(it.cancelSuspended$()), 0],
  save: [(it) => it.save(), 3],
  save$: [(it) => lastValueFrom(it.save$()), 3],
  close: [(it) => it.close(), undefined],
  close$: [(it) => lastValueFrom(it.close$(), { defaultValue: undefined }), undefined],
};

describe('S3: a handle of a session that was closed because it was idle', () => {
  it.each(Object.entries(members))('has %s', async (_name, [use, outcome]) => {
    const { session, pass } = await setUp();
    await pass(101);
    expect(await use(session)).toEqual(outcome);
  });

  it('has no other members', async () => {
    const { session } = await setUp();
    expect(Object.keys(session).sort()).toEqual(Object.keys(members).sort());
  });

  const change = (it: Pick<KeptSession, 'toolkit' | 'rename'>): void => {
    it.toolkit.activate('mail');
    it.rename('After');
    it.toolkit.deactivate('web');
  };
  const changed = { title: 'After', groups: { web: false, mail: true } };

  it('opens it again for what is set on it, and saves that, without another use', async () => {
    const { session, pass, stored } = await setUp();
    await pass(101);
    expect(await stored()).toMatchObject(known);
    change(session);
    expect([session.title, activeIn(session)]).toEqual(['After', ['mail']]);
    await pass(101);
    expect(await stored()).toMatchObject(changed);
    // Later changes are not undone by the former ones.
    session.rename('Last');
    await session.call('Two');
    expect(await stored()).toMatchObject({ ...changed, title: 'Last' });
    expect(activeIn(session)).toEqual(['mail']);
  });

  it('keeps what is set before the next use, and while it is saved or opened', async () => {
    for (const when of ['saving', 'closed', 'opening']) {
      const { session, pass, stored, gate } = await setUp();
      const { toolkit } = session;
      if (when === 'saving') gate.close();
      await pass(101);
      if (when === 'opening') gate.close();
      const state = when === 'opening' ? session.saveState() : undefined;
      change({ rename: session.rename, toolkit });
      gate.open();
      await state;
      await session.call('Two');
      expect([when, await stored()]).toEqual([when, expect.objectContaining(changed)]);
    }
  });

  it('keeps what is set while it cannot be saved or loaded', async () => {
    for (const when of ['saving', 'loading']) {
      const { session, pass, stored, gate } = await setUp();
      if (when === 'saving') gate.close();
      await pass(101);
      if (when === 'loading') gate.close();
      change(session);
      gate.fail();
      await pass(1);
      await session.call('Two');
      expect([when, await stored()]).toEqual([when, expect.objectContaining(changed)]);
    }
  });

  it('has the changes of other handles', async () => {
    const { session, kept, pass, stored } = await setUp();
    await pass(101);
    const other = await kept.open('s');
    change(other);
    expect([session.title, activeIn(session)]).toEqual(['After', ['mail']]);
    await pass(101);
    session.toolkit.activate('web');
    other.rename('Theirs');
    await session.call('Two');
    expect(await stored()).toMatchObject({ title: 'Theirs', groups: { web: true, mail: true } });
  });

  it('takes no changes once a program has closed it, or another process has saved it', async () => {
    for (const code of ['invalidState', 'conflict']) {
      const { session, kept, store } = await setUp();
      if (code === 'conflict') {
        await (await keepSessions(createAgent({ model: scriptedModel() }), store).open('s')).save();
        await expect(session.save()).rejects.toMatchObject({ code });
      } else await session.close();
      for (const set of [
        () => session.rename('After'),
        () => session.toolkit.activate('mail'),
        () => session.toolkit.add(named('own')),
      ])
        expect(set).toThrow(expect.objectContaining({ code }));
      expect((await kept.open('s')).title).not.toBe('After');
    }
  });
});
