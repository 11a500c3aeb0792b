import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { createAgent, type Message, tool } from 'millrace';
import { type Claim, fork$, journal } from 'millrace/journal';
import { sessions } from 'millrace/sessions';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { firstValueFrom, lastValueFrom, mergeMap, ReplaySubject } from 'rxjs';
import type { Store } from '../store.js';
import { openFiles } from './open-files.js';

// A disk that others use, too, takes its time to keep what it is given.
jest.setTimeout(240_000);

let place: string;
let directory: string;
beforeEach(async () => {
  place = await mkdtemp(join(tmpdir(), 'open-files-'));
  directory = join(place, 'store');
});
afterEach(() => rm(place, { recursive: true }));

const loses: readonly (readonly [string, () => Promise<unknown>])[] = [
  ['moved', () => rename(directory, join(place, 'elsewhere'))],
  ['deleted', () => rm(directory, { recursive: true })],
];
/** The error of a store whose part of this name has gone away. */
const gone = (part: string) => ({
  code: 'store',
  message: `The store in ${join(directory, part)} failed: the directory was moved or deleted while it was in use. Restore it, or open the store at its new path.`,
});

describe('S6: a store whose directory is gone is no conflict, and names the directory', () => {
  it.each(loses)('calls: %s', async (_, lose) => {
    const model = scriptedModel([toolCall('lose')], [text('Done.')]);
    const tools = [tool({ name: 'lose', description: 'Loses the directory.', run: lose })];
    const store = openFiles(directory);
    const agent = createAgent({ model, tools, use: [journal(store.calls)] });
    await expect(agent.call('?')).rejects.toMatchObject(gone('calls'));
    // Nothing happens that is not written down.
    expect(model.requests).toHaveLength(1);
  });

  it.each(loses)('conversations: %s', async (_, lose) => {
    const { memory } = openFiles(directory);
    const model = scriptedModel([text('One.')], [toolCall('lose')], [text('Two.')]);
    const tools = [tool({ name: 'lose', description: 'Loses the directory.', run: lose })];
    const session = sessions(createAgent({ model, tools }), { memory }).open('s');
    await session.call('1?');
    await expect(session.call('2?')).rejects.toMatchObject({
      message: expect.stringContaining(gone('conversations').message),
    });
  });

  it.each(loses)('sessions: %s', async (_, lose) => {
    const { sessions: store } = openFiles(directory);
    const agent = createAgent({ model: scriptedModel() });
    const state = await sessions(agent).open('s').saveState();
    const version = await lastValueFrom(store.save$('s', state, undefined));
    // Another opening has only loaded it.
    const { sessions: other } = openFiles(directory);
    await lastValueFrom(other.load$('s'));
    await lose();
    await expect(lastValueFrom(other.save$('s', state, version))).rejects.toMatchObject(
      gone('sessions'),
    );
    await expect(lastValueFrom(store.save$('s', state, version))).rejects.toMatchObject(
      gone('sessions'),
    );
  });
});

describe('S6: a store whose directory is gone makes no second one', () => {
  const agentOf = (store: Store) =>
    createAgent({ model: scriptedModel([text('Ok.')]), use: [journal(store.calls)] });
  const stateOf = (store: Store) => sessions(agentOf(store)).open('s').saveState();
  type Use = (store: Store, id: string) => Promise<unknown>;
  const uses: readonly (readonly [string, Use])[] = [
    ['calls', (store, callId) => lastValueFrom(agentOf(store).call$('?', { callId }))],
    [
      'conversations',
      ({ memory }, id) =>
        lastValueFrom(memory(id).append$([{ id: 'm', role: 'user', content: [] }])),
    ],
    [
      'sessions',
      async (store, id) => {
        const state = await stateOf(store);
        return lastValueFrom(store.sessions.save$(id, state, undefined));
      },
    ],
  ];
  const places = loses.flatMap(([how, lose]) =>
    uses.flatMap(([used, use]) =>
      uses.map(([next, again]) => ({ how, lose, used, use, next, again })),
    ),
  );
  it.each(places)('$how after $used: new $next', async ({ lose, use, next, again }) => {
    const store = openFiles(directory);
    await use(store, 'first');
    await lose();
    await expect(again(store, 'second')).rejects.toMatchObject({
      message: expect.stringContaining(gone(next).message),
    });
    expect(existsSync(directory)).toBe(false);
    await expect(lastValueFrom(store.sessions.find$())).rejects.toMatchObject(gone('sessions'));
    await expect(lastValueFrom(store.calls.driver.list$())).rejects.toMatchObject(gone('calls'));
    // A store that is opened only now begins anew.
    await again(openFiles(directory), 'second');
    expect(existsSync(directory)).toBe(true);
  });

  it('a call that is claimed before anything is written', async () => {
    const store = openFiles(directory);
    const held = new ReplaySubject<Claim>(1);
    const claimed = store.calls.driver
      .claim$('c')
      .subscribe({ next: (it) => held.next(it), error: () => undefined });
    const claim = await firstValueFrom(held);
    await loses[0]?.[1]();
    const record = { kind: 'step', name: 'a', seq: 0, text: '1' } as const;
    await expect(lastValueFrom(claim.append$([record]))).rejects.toMatchObject(gone('calls'));
    claimed.unsubscribe();
    expect(existsSync(directory)).toBe(false);
  });

  it('a call that is waited for', async () => {
    const held = new ReplaySubject<Claim>(1);
    const holding = openFiles(directory)
      .calls.driver.claim$('c')
      .subscribe({
        next: (it) => held.next(it),
        error: () => undefined,
      });
    await firstValueFrom(held);
    const waiting = firstValueFrom(openFiles(directory).calls.driver.claim$('c'));
    await Promise.all([
      expect(waiting).rejects.toMatchObject(gone('calls')),
      rename(directory, join(place, 'elsewhere')),
    ]);
    holding.unsubscribe();
    expect(existsSync(directory)).toBe(false);
  });

  it('a directory that was there before, and one that is put back', async () => {
    await uses[0]?.[1](openFiles(directory), 'first');
    const store = openFiles(directory);
    expect(await lastValueFrom(store.sessions.find$())).toEqual([]);
    await loses[0]?.[1]();
    await expect(uses[1]?.[1](store, 's')).rejects.toMatchObject(gone('conversations'));
    await rename(join(place, 'elsewhere'), directory);
    await uses[1]?.[1](store, 's');
  });
});

describe('X1: openFiles() without a directory says what to do', () => {
  it.each([
    ['undefined', process.env['MILLRACE_NO_SUCH_DIRECTORY']],
    ['an empty string', ''],
    ['42', 42],
  ])('%s', (given, value) => {
    expect(() => openFiles(value as string)).toThrow(
      expect.objectContaining({
        code: 'config',
        message: `openFiles() needs the path of a directory, such as './data', not ${given}. If it comes from an environment variable, set the variable or pass a default.`,
      }),
    );
  });
});

it('a fork can be resumed as soon as its id is emitted', async () => {
  const store = openFiles(directory);
  const durable = journal(store.calls);
  const weather = tool({ name: 'weather', description: 'The weather.', run: () => 'Sunny' });
  const model = scriptedModel([toolCall('weather')], [text('Sunny.')], [text('Still sunny.')]);
  const agent = createAgent({ model, tools: [weather], use: [durable] });
  await agent.call('How is it?', { callId: 'c' });
  const forked$ = fork$(store.calls, 'c', { at: '2' }).pipe(
    mergeMap((id) => durable.resume$(agent, id)),
  );
  expect((await lastValueFrom(forked$)).text).toBe('Still sunny.');
  await lastValueFrom(store.close$(), { defaultValue: undefined });
});

describe('X17: a store marks its directory before anyone can ask for what is in it', () => {
  const mark = '.millrace-store';
  const greeting: Message = { id: 'a', role: 'user', content: [{ type: 'text', text: 'Hi.' }] };
  const uses: readonly (readonly [string, (store: Store) => Promise<unknown>])[] = [
    [
      'calls',
      ({ calls }) => {
        const seen: boolean[] = [];
        const look = tool({
          name: 'look',
          description: 'Looks.',
          run: () => void seen.push(existsSync(join(directory, mark))),
        });
        const model = scriptedModel([toolCall('look')], [text('Done.')]);
        const agent = createAgent({ model, tools: [look], use: [journal(calls)] });
        return agent.call('?').then(() => expect(seen).toEqual([true]));
      },
    ],
    [
      'conversations',
      ({ memory }) => lastValueFrom(memory('s').append$([greeting]), { defaultValue: 0 }),
    ],
    [
      'sessions',
      async ({ sessions: kept }) => {
        const state = await sessions(createAgent({ model: scriptedModel() }))
          .open('s')
          .saveState();
        return lastValueFrom(kept.save$('s', state, undefined));
      },
    ],
  ];

  it.each(uses)('with %s', async (_, use) => {
    const store = openFiles(directory);
    expect(existsSync(directory)).toBe(false);
    await use(store);
    expect(readdirSync(directory)).toContain(mark);
  });

  it('also one that others have made', async () => {
    await uses[1]?.[1](openFiles(directory));
    await rm(join(directory, mark));
    await lastValueFrom(openFiles(directory).memory('s').load$());
    expect(readdirSync(directory)).toContain(mark);
  });
});

it('X10: a sealed store of files has no text of a call on disk, and resumes it', async () => {
  const seal = {
    seal: (plain: string) => Buffer.from(plain).toString('hex'),
    open: (sealed: string) => Buffer.from(sealed, 'hex').toString(),
  };
  const { calls } = openFiles(directory, { seal });
  const agent = createAgent({ model: scriptedModel([text('It is 4711.')]), use: [journal(calls)] });
  await sessions(agent, {}).open('s').call('What is it?', { callId: 'a' });
  const files = readdirSync(directory, { recursive: true, encoding: 'utf8' });
  const written = files
    .filter((name) => name.endsWith('.jsonl'))
    .map((name) => readFileSync(join(directory, name), 'utf8'));

  expect(written.join('')).toContain('sealed');
  expect(written.join('')).not.toContain('4711');
  const again = journal(openFiles(directory, { seal }).calls);
  const found = await lastValueFrom(again.store.driver.list$({ sessionId: 's' }));
  expect(found.map(({ callId }) => callId)).toEqual(['a']);
  expect((await again.resume(sessions(agent, {}).open('s'), 'a')).text).toBe('It is 4711.');
});
