import { firstValueFrom } from 'rxjs';
import { appendedState } from '../layers/sessions/appended-state.js';
import type {
  CallEntry,
  SessionChange,
  SessionState,
  SessionStore,
} from '../layers/sessions/session-state.js';
import { isMillraceError } from '../values/errors.js';
import { type Message, textBlock } from '../values/message.js';
import type { Entry } from '../values/message-tree.js';
import { noUsage } from '../values/usage.js';
import { deepStrictEqual, notStrictEqual, ok, rejects, strictEqual } from './assert.js';
import { conflict, list, load, remove, save, stateOf } from './stored-sessions.js';
import type { Check } from './verify-events.js';

type Appending = SessionStore & Required<Pick<SessionStore, 'append$'>>;

const append = (
  store: Appending,
  id: string,
  change: SessionChange,
  expected: number,
): Promise<number> => firstValueFrom(store.append$(id, change, expected));

const entry = (id: string, after: string | null, text = id): Entry => {
  const role = id.startsWith('a') ? 'assistant' : 'user';
  const message: Message = { id, role, content: [textBlock(text)] };
  return { message, after };
};

const restOf = (fields: Partial<SessionState> = {}): SessionChange['rest'] => {
  const { messages: _, branches: __, earlierCalls: ___, ...rest } = { ...stateOf('x'), ...fields };
  return rest;
};

/** Messages one after the other; the last one is the head. */
const chain = (
  after: string | null,
  ids: readonly string[],
  fields?: Partial<SessionState>,
): SessionChange => ({
  entries: ids.map((id, at) => entry(id, ids[at - 1] ?? after)),
  head: ids.at(-1) ?? after,
  rest: restOf(fields),
});

const running = (callId: string): Pick<SessionState, 'lastCall'> => ({
  lastCall: { callId, usageBefore: noUsage, hasEnded: false },
});

const another: Partial<SessionState> = {
  title: 'Tea 🍵\u0000',
  usage: { ...noUsage, inputTokens: 7 },
  interrupted: true,
  groups: { web: false, mail: true },
  ...running('c2'),
};

const call = (callId: string, hasEnded = true): CallEntry => ({
  call: { callId, usage: { ...noUsage, outputTokens: callId.length }, hasEnded },
});

/** Changes that follow one another, from the messages `m0` and `m1`. */
const changes: readonly SessionChange[] = [
  chain('m1', ['a1', 'u2'], another),
  // Beside them: the head stays.
  { ...chain('m0', ['b1', 'b2']), head: 'u2' },
  chain('b2', ['b3']),
  { entries: [], head: 'b3', rest: restOf({ interrupted: true }) },
  // Calls with messages and without. One is added again, and is the last one then.
  { ...chain('b3', ['b4']), entries: [call('c1'), entry('b4', 'b3'), call('c\u0000 🍵', false)] },
  { entries: [call('c1', false)], head: 'b3', rest: restOf() },
  // A call that runs again is no earlier one until the next one begins.
  { entries: [call('c3')], head: 'b3', rest: restOf(another) },
  { entries: [call('c2')], head: 'b3', rest: restOf(running('c3')) },
  { entries: [call('c3')], head: 'b3', rest: restOf(running('c4')) },
  { entries: [call('c4')], head: 'b3', rest: restOf() },
  // Two branches, and the head on a third one.
  { entries: [entry('n1', null), entry('n2', 'u2')], head: 'b1', rest: restOf() },
  {
    entries: [entry('odd \u0000 🍵 \'"', 'b1', '\u2028\ud800 \\u0000')],
    head: 'm0',
    rest: restOf(),
  },
];

const checks: Readonly<Record<string, (store: Appending) => Promise<void>>> = {
  'appends messages on any branch, and replaces the rest': async (store) => {
    let state = stateOf('one', 'two');
    let version = await save(store, 's', state);
    for (const change of changes) {
      const next = await append(store, 's', change, version);
      notStrictEqual(next, version);
      state = appendedState(state, change);
      version = next;
      deepStrictEqual(await load(store, 's'), { version, state });
    }
    const whole = stateOf('whole');
    const saved = await save(store, 's', whole, version);
    deepStrictEqual(await load(store, 's'), { version: saved, state: whole });
    const after = await append(store, 's', chain('m0', ['x']), saved);
    const expected = appendedState(whole, chain('m0', ['x']));
    deepStrictEqual(await load(store, 's'), { version: after, state: expected });
  },
  'appends to an empty conversation, and many times': async (store) => {
    let state = stateOf();
    let version = await save(store, 's', state);
    await save(store, 'other', stateOf('other'));
    const more = async (change: SessionChange): Promise<void> => {
      version = await append(store, 's', change, version);
      state = appendedState(state, change);
    };
    for (let at = 0; at < 60; at += 1)
      await more(chain(at === 0 ? null : `m${at - 1}`, [`m${at}`]));
    const long = entry('z', 'm59', '🍵'.repeat(300_000));
    await more({ entries: [long], head: 'z', rest: restOf() });
    deepStrictEqual(await load(store, 's'), { version, state });
    deepStrictEqual((await load(store, 'other'))?.state, stateOf('other'));
  },
  'keeps the last hundred earlier calls': async (store) => {
    let version = await save(store, 's', { ...stateOf(), earlierCalls: [call('c').call] });
    for (let round = 0; round < 3; round += 1) {
      const entries = Array.from({ length: 40 }, (_, at) => call(`c${round}/${at}`));
      version = await append(store, 's', { entries, head: null, rest: restOf() }, version);
    }
    const { state } = (await load(store, 's')) ?? {};
    const unchanged = { entries: [], head: null, rest: restOf() };
    const { earlierCalls: calls = [] } = appendedState(state, unchanged);
    strictEqual(calls.length, 100);
    deepStrictEqual([calls[0], calls[99]], [call('c0/20').call, call('c2/39').call]);
  },
  'rejects an append that does not follow the stored state': async (store) => {
    const change = chain('m0', ['x']);
    await rejects(append(store, 'none', change, 1), conflict);
    strictEqual(await load(store, 'none'), undefined);
    const first = await save(store, 's', stateOf('a'));
    const second = await append(store, 's', change, first);
    const before = await load(store, 's');
    for (const version of [first, second + 1, -1]) {
      await rejects(append(store, 's', chain('m0', ['y']), version), conflict);
    }
    await rejects(save(store, 's', stateOf('y'), first), conflict);
    await rejects(save(store, 's', stateOf('y')), conflict);
    deepStrictEqual(await load(store, 's'), before);
  },
  'keeps nothing of what was appended to a removed session': async (store) => {
    const first = await save(store, 's', stateOf('a'));
    const second = await append(store, 's', chain('m0', ['x']), first);
    await remove(store, 's');
    await rejects(append(store, 's', chain('x', ['y']), second), conflict);
    strictEqual(await load(store, 's'), undefined);
    deepStrictEqual(await list(store, { search: 'x' }), []);
    const again = await save(store, 's', stateOf('again'));
    await rejects(append(store, 's', chain('m0', ['y']), second), conflict);
    deepStrictEqual(await load(store, 's'), { version: again, state: stateOf('again') });
  },
  'lets one of several concurrent changes win': async (store) => {
    let version = await save(store, 's', stateOf('a'));
    let state = stateOf('a');
    for (const round of [1, 2, 3, 4, 5]) {
      const before = { version, state };
      const given = Array.from({ length: 12 }, (_, at) => chain('m0', [`${round}/${at}`]));
      const work = given.map((change, at) =>
        at % 6 === 5
          ? save(store, 's', appendedState(before.state, change), before.version)
          : append(store, 's', change, before.version),
      );
      const done = await Promise.allSettled(work);
      const winners = given.filter((_, at) => done[at]?.status === 'fulfilled');
      strictEqual(winners.length, 1);
      for (const result of done) {
        if (result.status === 'fulfilled') version = result.value;
        else ok(isMillraceError(result.reason) && result.reason.code === 'conflict');
      }
      state = winners.reduce(appendedState, before.state);
      deepStrictEqual(await load(store, 's'), { version, state });
    }
  },
  'finds what was appended, and not what was saved over': async (store) => {
    const first = await save(store, 's', { ...stateOf('one tea'), title: 'Old' });
    await save(store, 'other', stateOf('two tea'));
    const mate = [entry('a1', 'm0', 'Some MATE')];
    const rest = restOf({ title: 'New' });
    const second = await append(store, 's', { entries: mate, head: 'm0', rest }, first);
    for (const search of ['mate', 'one tea', 'new']) {
      deepStrictEqual(await list(store, { search }), ['s']);
    }
    deepStrictEqual(await list(store, { search: 'old' }), []);
    deepStrictEqual(await list(store, { search: 'TEA' }), ['other', 's']);
    const third = await append(store, 's', { entries: [], head: 'm0', rest: restOf() }, second);
    deepStrictEqual(await list(store, { search: 'new' }), []);
    deepStrictEqual(await list(store, { search: 'mate' }), ['s']);
    await save(store, 's', stateOf('three'), third);
    for (const search of ['mate', 'one tea']) deepStrictEqual(await list(store, { search }), []);
    deepStrictEqual(await list(store, { search: 'three' }), ['s']);
  },
  'lists a session by the time of its last append': async (store) => {
    const ids = ['a', 'b', 'c'];
    for (const id of ids) await save(store, id, stateOf(id));
    for (const until = Date.now() + 10_000; ;) {
      ok(Date.now() < until, 'The times of appends do not increase.');
      const { version = 0 } = (await load(store, 'a')) ?? {};
      await append(store, 'a', { entries: [], head: 'm0', rest: restOf() }, version);
      const [newest, next] = await firstValueFrom(store.find$());
      if (newest?.id === 'a' && newest.savedAt > (next?.savedAt ?? 0)) break;
    }
    deepStrictEqual(await list(store), ids);
  },
  'copies what is appended, and is cold': async (store) => {
    const version = await save(store, 's', stateOf('a'));
    const groups = { web: true };
    const change = chain('m0', ['x'], { groups });
    const expected = appendedState(stateOf('a'), chain('m0', ['x'], { groups: { web: true } }));
    void store.append$('s', chain('m0', ['y']), version);
    await append(store, 's', change, version);
    groups.web = false;
    deepStrictEqual((await load(store, 's'))?.state, expected);
  },
};

/** The checks of `append$`. A store without it passes them. */
export const sessionAppendChecks = (
  create: () => SessionStore | Promise<SessionStore>,
): readonly Check[] =>
  Object.entries(checks).map(([name, check]) => ({
    name,
    run: async () => {
      const store = await create();
      if (canAppend(store)) await check(store);
    },
  }));

const canAppend = (store: SessionStore): store is Appending => store.append$ !== undefined;
