import { deepStrictEqual, ok, strictEqual } from './assert.js';
import { EMPTY, filter, lastValueFrom } from 'rxjs';
import { isMillraceError } from '../values/errors.js';
import { type AppendOptions, isMemoryChange, kept$, type Memory } from '../values/memory.js';
import { lineOf, type MessageTree } from '../values/message-tree.js';
import type { MemoryFactory } from '../memories/in-process-memory.js';
import { type Message, textBlock } from '../values/message.js';
import { type Check, checksOf } from './verify-events.js';

const message = (id: string): Message => ({
  id,
  role: 'user',
  content: [textBlock(`I am ${id}.`)],
});

const load = (memory: Memory, at?: string | null): Promise<readonly Message[]> =>
  lastValueFrom(memory.load$(at === undefined ? undefined : { at }));

const append = (memory: Memory, ...messages: readonly Message[]): Promise<unknown> =>
  lastValueFrom(memory.append$(messages), { defaultValue: undefined });

/** Appends messages with these ids, and resolves to the change that the memory emitted. */
const appendAt = async (
  memory: Memory,
  options: AppendOptions,
  ...ids: readonly string[]
): Promise<unknown> =>
  lastValueFrom(memory.append$(ids.map(message), options).pipe(filter(isMemoryChange)), {
    defaultValue: undefined,
  });

const replace = (memory: Memory, ...messages: readonly Message[]): Promise<unknown> =>
  lastValueFrom(memory.replace$?.(lineOf(messages)) ?? EMPTY, { defaultValue: undefined });

const all = async (memory: Memory): Promise<readonly Message[]> =>
  (await lastValueFrom(kept$(memory))).entries.map((entry) => entry.message);

const idsAt = async (memory: Memory, at?: string | null): Promise<readonly string[]> =>
  (await load(memory, at)).map(({ id }) => id);

/** A memory with branches: a, b, c; after a also d, e; after d also f. */
const branched = async (memory: Memory): Promise<Memory> => {
  await appendAt(memory, {}, 'a', 'b', 'c');
  await appendAt(memory, { after: 'a' }, 'd', 'e');
  await appendAt(memory, { after: 'd' }, 'f');
  return memory;
};

/** Checks of memories with branches, from one that is empty. */
const treeChecks: Readonly<Record<string, (memory: Memory) => Promise<void>>> = {
  'continues after the message that is named, and keeps what was there as a branch': async (
    memory,
  ) => {
    await branched(memory);
    deepStrictEqual(await idsAt(memory), ['a', 'b', 'c']);
    deepStrictEqual(await idsAt(memory, 'c'), ['a', 'b', 'c']);
    deepStrictEqual(await idsAt(memory, 'e'), ['a', 'd', 'e']);
    deepStrictEqual(await idsAt(memory, 'f'), ['a', 'd', 'f']);
    deepStrictEqual(await idsAt(memory, 'd'), ['a', 'd']);
    deepStrictEqual(await idsAt(memory, null), []);
  },
  'begins again after null': async (memory) => {
    await branched(memory);
    await appendAt(memory, { after: null }, 'g');
    deepStrictEqual(await idsAt(memory, 'g'), ['g']);
    deepStrictEqual(await lastValueFrom(memory.branches$?.('g') ?? EMPTY), ['a', 'g']);
  },
  'finds the end of a call by its id': async (memory) => {
    await appendAt(memory, {}, 'one/input/0', 'one/1', 'two/input/0');
    deepStrictEqual(await idsAt(memory, 'one'), ['one/input/0', 'one/1']);
    await appendAt(memory, { after: 'one' }, 'three/input/0');
    deepStrictEqual(await idsAt(memory, 'three'), ['one/input/0', 'one/1', 'three/input/0']);
  },
  'emits the id of the last message that it loads': async (memory) => {
    const last = (at?: string | null) =>
      lastValueFrom(memory.last$?.(at === undefined ? undefined : { at }) ?? EMPTY);
    strictEqual(await last(), null);
    await branched(memory);
    await appendAt(memory, { after: 'f' }, 'two/input/0', 'two/1');
    const found = await Promise.all([undefined, null, 'e', 'd', 'two'].map((at) => last(at)));
    deepStrictEqual(found, ['c', null, 'e', 'd', 'two/1']);
    await refused(() => last('x'));
  },
  'lists the messages that come after the same one, the oldest first': async (memory) => {
    await branched(memory);
    const siblings = (at: string) => lastValueFrom(memory.branches$?.(at) ?? EMPTY);
    deepStrictEqual(await siblings('d'), ['b', 'd']);
    deepStrictEqual(await siblings('b'), ['b', 'd']);
    deepStrictEqual(await siblings('f'), ['e', 'f']);
    deepStrictEqual(await siblings('a'), ['a']);
  },
  'moves the head only from the named message, or from what an append replaces': async (memory) => {
    await appendAt(memory, {}, 'a', 'b');
    const moved = await appendAt(memory, { after: 'b' }, 'c');
    ok(isMemoryChange(moved));
    deepStrictEqual(moved.head, { from: 'b', to: 'c' });
    const beside = await appendAt(memory, { after: 'a' }, 'd');
    ok(isMemoryChange(beside));
    deepStrictEqual(beside.after, 'a');
    deepStrictEqual(beside.head, { from: 'c', to: 'c' });
    await appendAt(memory, { after: 'a', replaces: 'd' }, 'e');
    deepStrictEqual(await idsAt(memory), ['a', 'b', 'c']);
    await appendAt(memory, { after: 'a', replaces: 'b' }, 'f', 'g');
    deepStrictEqual(await idsAt(memory), ['a', 'f', 'g']);
    await appendAt(memory, {}, 'h');
    deepStrictEqual(await idsAt(memory), ['a', 'f', 'g', 'h']);
    deepStrictEqual(await idsAt(memory, 'c'), ['a', 'b', 'c']);
  },
  'repeats an append without an effect, at any place': async (memory) => {
    await branched(memory);
    await appendAt(memory, { after: 'a' }, 'd', 'e');
    await appendAt(memory, { after: 'c' }, 'd', 'e');
    await appendAt(memory, { after: 'a' }, 'd', 'e', 'g');
    deepStrictEqual(await idsAt(memory, 'g'), ['a', 'd', 'e', 'g']);
    deepStrictEqual(await idsAt(memory), ['a', 'b', 'c']);
    strictEqual((await all(memory)).length, 7);
  },
  'refuses a place that it does not know, and changes nothing': async (memory) => {
    await branched(memory);
    const before = await lastValueFrom(kept$(memory));
    for (const at of ['x', '', 'a/', '__proto__', '%', 'a%']) {
      await refused(() => load(memory, at));
      await refused(() => appendAt(memory, { after: at }, 'y'));
      await refused(() => lastValueFrom(memory.branches$?.(at) ?? EMPTY));
      await refused(() => lastValueFrom(memory.moveHead$?.(at) ?? EMPTY));
      await refused(() => lastValueFrom(memory.remove$?.(at) ?? EMPTY));
    }
    deepStrictEqual(await lastValueFrom(kept$(memory)), before);
  },
  'moves its head, and removes a branch': async (memory) => {
    await branched(memory);
    await lastValueFrom(memory.moveHead$?.('e') ?? EMPTY, { defaultValue: undefined });
    deepStrictEqual(await idsAt(memory), ['a', 'd', 'e']);
    await lastValueFrom(memory.remove$?.('d') ?? EMPTY, { defaultValue: undefined });
    deepStrictEqual(await idsAt(memory), ['a', 'b', 'c']);
    deepStrictEqual(
      (await all(memory)).map(({ id }) => id),
      ['a', 'b', 'c'],
    );
    await appendAt(memory, {}, 'd');
    deepStrictEqual(await idsAt(memory), ['a', 'b', 'c', 'd']);
    await lastValueFrom(memory.remove$?.('a') ?? EMPTY, { defaultValue: undefined });
    deepStrictEqual(await idsAt(memory), []);
  },
  'emits what it removes, and refuses to continue there': async (memory) => {
    await branched(memory);
    await lastValueFrom(memory.moveHead$?.('f') ?? EMPTY);
    const removed = await lastValueFrom(memory.remove$?.('d') ?? EMPTY);
    ok(isMemoryChange(removed));
    deepStrictEqual([...removed.removed].sort(), ['d', 'e', 'f']);
    deepStrictEqual(removed.head, { from: 'f', to: 'c' });
    for (const at of ['d', 'e', 'f']) {
      await refused(() => appendAt(memory, { after: at }, 'y'));
      await refused(() => load(memory, at));
    }
    deepStrictEqual(await lastValueFrom(memory.branches$?.('b') ?? EMPTY), ['b']);
  },
  'keeps everything that is appended at the same time, each append in one piece': async (
    memory,
  ) => {
    await appendAt(memory, {}, 'a');
    const names = ['1', '2', '3', '4', '5', '6', '7', '8'];
    const changes = await Promise.all(
      names.map((name) => appendAt(memory, { after: 'a' }, `${name}/1`, `${name}/2`)),
    );
    for (const name of names) {
      deepStrictEqual(await idsAt(memory, name), ['a', `${name}/1`, `${name}/2`]);
    }
    const siblings = await lastValueFrom(memory.branches$?.('1/1') ?? EMPTY);
    deepStrictEqual([...siblings].sort(), names.map((name) => `${name}/1`).sort());
    const [head] = (await idsAt(memory)).slice(-1);
    for (const change of changes) ok(isMemoryChange(change) && change.head?.to === head);
    await Promise.all(names.map((name) => appendAt(memory, {}, `${name}/3`)));
    strictEqual((await idsAt(memory)).length, 3 + names.length);
  },
  'takes no id for another one that is like it': async (memory) => {
    const long = 'x'.repeat(140);
    const ids = ['c1', 'c10', 'c_', 'c%', 'C1', 'c1/sub', 'é', 'e\u0301', '__proto__', long];
    for (const id of ids) await appendAt(memory, { after: null }, `${id}/1`, `${id}/2`);
    for (const id of ids) {
      const end = id === 'c1' ? 'c1/sub' : id;
      deepStrictEqual(await idsAt(memory, id), [`${end}/1`, `${end}/2`]);
      deepStrictEqual(await idsAt(memory, `${id}/1`), [`${id}/1`]);
    }
    for (const at of ['c', 'c1/', 'c-', long.slice(1), `${long}x`]) {
      await refused(() => load(memory, at));
    }
  },
  'gives everything, and takes it back': async (memory) => {
    await branched(memory);
    const tree = await lastValueFrom(kept$(memory));
    deepStrictEqual(tree, {
      entries: [
        ...[
          { message: message('a'), after: null },
          { message: message('b'), after: 'a' },
        ],
        ...[
          { message: message('c'), after: 'b' },
          { message: message('d'), after: 'a' },
        ],
        ...[
          { message: message('e'), after: 'd' },
          { message: message('f'), after: 'd' },
        ],
      ],
      head: 'c',
    });
    if (memory.replace$ === undefined) return;
    const other: MessageTree = { ...tree, head: 'f' };
    await lastValueFrom(memory.replace$(other), { defaultValue: undefined });
    deepStrictEqual(await lastValueFrom(kept$(memory)), other);
    deepStrictEqual(await idsAt(memory), ['a', 'd', 'f']);
  },
};

const refused = (work: () => Promise<unknown>): Promise<void> =>
  work().then(
    () => {
      throw new Error('It takes a place that it does not know.');
    },
    (error: unknown) => {
      strictEqual(isMillraceError(error) ? error.code : error, 'conflict');
    },
  );

/** Checks of any memory, from one that is empty. */
const lineChecks: typeof treeChecks = {
  'starts empty': async (memory) => {
    deepStrictEqual(await load(memory), []);
  },
  'returns messages, the oldest first': async (memory) => {
    await append(memory, message('a'), message('b'));
    await append(memory, message('c'));
    deepStrictEqual(await load(memory), [message('a'), message('b'), message('c')]);
  },
  'adds a repeated message once': async (memory) => {
    await append(memory, message('a'), message('b'), message('a'));
    await append(memory, message('b'), message('c'));
    deepStrictEqual(await load(memory), [message('a'), message('b'), message('c')]);
  },
  'is cold': async (memory) => {
    void memory.append$([message('a')]);
    deepStrictEqual(await load(memory), []);
  },
  'does not change a returned list': async (memory) => {
    await append(memory, message('a'));
    const before = await load(memory);
    await append(memory, message('b'));
    strictEqual(before.length, 1);
  },
  'returns every stored message': async (memory) => {
    await append(memory, message('a'), message('b'));
    deepStrictEqual(await all(memory), [message('a'), message('b')]);
  },
};

/** Checks of several sessions. */
const sessionChecks: Readonly<Record<string, (factory: MemoryFactory) => Promise<void>>> = {
  'separates sessions with any ids': async (factory) => {
    const ids = ['a', 'b', '__proto__', 'constructor', '../../a', 'a\u0000b', 'é'.repeat(2000)];
    for (const id of ids) await append(factory(id), message(id));
    for (const id of ids) deepStrictEqual(await load(factory(id)), [message(id)]);
  },
  'replaces all messages, if it supports that': async (factory) => {
    const memory = factory('s');
    if (memory.replace$ === undefined) return;
    await append(memory, message('a'), message('b'));
    await append(factory('t'), message('t'));
    void memory.replace$(lineOf([]));
    const before = await all(memory);
    strictEqual(before.length, 2);
    await replace(memory, message('c'), message('a'));
    strictEqual(before.length, 2);
    deepStrictEqual(await all(memory), [message('c'), message('a')]);
    await append(memory, message('a'), message('b'));
    deepStrictEqual(await all(factory('s')), [message('c'), message('a'), message('b')]);
    await replace(memory);
    deepStrictEqual(await all(memory), []);
    deepStrictEqual(await load(factory('t')), [message('t')]);
  },
};

/** The contract of memories, with or without `replace$` and branches. `create` returns an unused factory. */
export const memoryContract = (create: () => MemoryFactory): readonly Check[] => [
  ...checksOf(() => create()('s'), lineChecks),
  ...checksOf(create, sessionChecks),
  ...Object.entries(treeChecks).map(([name, check]) => ({
    name: `with branches: ${name}`,
    run: async () => {
      const memory = create()('s');
      if (memory.branches$ !== undefined) await check(memory);
    },
  })),
];
