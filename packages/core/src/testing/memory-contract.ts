import { deepStrictEqual, strictEqual } from './assert.js';
import { EMPTY, lastValueFrom } from 'rxjs';
import type { Memory } from '../values/memory.js';
import type { MemoryFactory } from '../memories/in-process-memory.js';
import { type Message, textBlock } from '../values/message.js';
import type { Check } from './verify-events.js';

const message = (id: string): Message => ({
  id,
  role: 'user',
  content: [textBlock(`I am ${id}.`)],
});

const load = (memory: Memory): Promise<readonly Message[]> => lastValueFrom(memory.load$());

const append = (memory: Memory, ...messages: readonly Message[]): Promise<unknown> =>
  lastValueFrom(memory.append$(messages), { defaultValue: undefined });

const replace = (memory: Memory, ...messages: readonly Message[]): Promise<unknown> =>
  lastValueFrom(memory.replace$?.(messages) ?? EMPTY, { defaultValue: undefined });

const all = (memory: Memory): Promise<readonly Message[]> =>
  lastValueFrom(memory.all$?.() ?? memory.load$());

/** The contract of memories, with or without `replace$`. `create` returns an unused factory. */
export const memoryContract = (create: () => MemoryFactory): readonly Check[] => [
  { name: 'starts empty', run: async () => deepStrictEqual(await load(create()('s')), []) },
  {
    name: 'returns messages, the oldest first',
    run: async () => {
      const memory = create()('s');
      await append(memory, message('a'), message('b'));
      await append(memory, message('c'));
      deepStrictEqual(await load(memory), [message('a'), message('b'), message('c')]);
    },
  },
  {
    name: 'adds a repeated message once',
    run: async () => {
      const memory = create()('s');
      await append(memory, message('a'), message('b'), message('a'));
      await append(memory, message('b'), message('c'));
      deepStrictEqual(await load(memory), [message('a'), message('b'), message('c')]);
    },
  },
  {
    name: 'is cold',
    run: async () => {
      const memory = create()('s');
      void memory.append$([message('a')]);
      deepStrictEqual(await load(memory), []);
    },
  },
  {
    name: 'does not change a returned list',
    run: async () => {
      const memory = create()('s');
      await append(memory, message('a'));
      const before = await load(memory);
      await append(memory, message('b'));
      strictEqual(before.length, 1);
    },
  },
  {
    name: 'separates sessions with any ids',
    run: async () => {
      const factory = create();
      const ids = ['a', 'b', '__proto__', 'constructor', '../../a', 'a\u0000b', 'é'.repeat(2000)];
      for (const id of ids) await append(factory(id), message(id));
      for (const id of ids) deepStrictEqual(await load(factory(id)), [message(id)]);
    },
  },
  {
    name: 'returns every stored message',
    run: async () => {
      const memory = create()('s');
      await append(memory, message('a'), message('b'));
      deepStrictEqual(await all(memory), [message('a'), message('b')]);
    },
  },
  {
    name: 'replaces all messages, if it supports that',
    run: async () => {
      const factory = create();
      const memory = factory('s');
      if (memory.replace$ === undefined) return;
      await append(memory, message('a'), message('b'));
      await append(factory('t'), message('t'));
      void memory.replace$([]);
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
  },
];
