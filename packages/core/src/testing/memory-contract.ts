import { deepStrictEqual, strictEqual } from 'node:assert/strict';
import { EMPTY, lastValueFrom } from 'rxjs';
import type { Memory } from '../values/memory.js';
import type { MemoryFactory } from '../memories/in-process-memory.js';
import { type Message, textBlock } from '../values/message.js';
import type { Check } from './verify-events.js';

const said = (id: string): Message => ({ id, role: 'user', content: [textBlock(`I am ${id}.`)] });

const load = (memory: Memory): Promise<readonly Message[]> => lastValueFrom(memory.load$());

const append = (memory: Memory, ...messages: readonly Message[]): Promise<unknown> =>
  lastValueFrom(memory.append$(messages), { defaultValue: undefined });

const replace = (memory: Memory, ...messages: readonly Message[]): Promise<unknown> =>
  lastValueFrom(memory.replace$?.(messages) ?? EMPTY, { defaultValue: undefined });

const all = (memory: Memory): Promise<readonly Message[]> =>
  lastValueFrom(memory.all$?.() ?? memory.load$());

/** What every memory must do, and one with `replace$` besides. `create` makes a factory that has not been used. */
export const memoryContract = (create: () => MemoryFactory): readonly Check[] => [
  {
    name: 'begins empty',
    run: async () => deepStrictEqual(await load(create()('s')), []),
  },
  {
    name: 'gives back what was added, oldest first',
    run: async () => {
      const memory = create()('s');
      await append(memory, said('a'), said('b'));
      await append(memory, said('c'));
      deepStrictEqual(await load(memory), [said('a'), said('b'), said('c')]);
    },
  },
  {
    name: 'adds a message only once, whatever is repeated',
    run: async () => {
      const memory = create()('s');
      await append(memory, said('a'), said('b'), said('a'));
      await append(memory, said('b'), said('c'));
      deepStrictEqual(await load(memory), [said('a'), said('b'), said('c')]);
    },
  },
  {
    name: 'does nothing before it is subscribed to',
    run: async () => {
      const memory = create()('s');
      void memory.append$([said('a')]);
      deepStrictEqual(await load(memory), []);
    },
  },
  {
    name: 'leaves a list alone that it has given out',
    run: async () => {
      const memory = create()('s');
      await append(memory, said('a'));
      const before = await load(memory);
      await append(memory, said('b'));
      strictEqual(before.length, 1);
    },
  },
  {
    name: 'keeps sessions apart, and finds each again, whatever its id',
    run: async () => {
      const factory = create();
      const ids = ['a', 'b', '__proto__', 'constructor', '../../a', 'a\u0000b', 'é'.repeat(2000)];
      for (const id of ids) await append(factory(id), said(id));
      for (const id of ids) deepStrictEqual(await load(factory(id)), [said(id)]);
    },
  },
  {
    name: 'gives all that it keeps',
    run: async () => {
      const memory = create()('s');
      await append(memory, said('a'), said('b'));
      deepStrictEqual(await all(memory), [said('a'), said('b')]);
    },
  },
  {
    name: 'takes other messages in the place of all, where it can',
    run: async () => {
      const factory = create();
      const memory = factory('s');
      if (memory.replace$ === undefined) return;
      await append(memory, said('a'), said('b'));
      await append(factory('t'), said('t'));
      void memory.replace$([]);
      const before = await all(memory);
      strictEqual(before.length, 2);
      await replace(memory, said('c'), said('a'));
      strictEqual(before.length, 2);
      deepStrictEqual(await all(memory), [said('c'), said('a')]);
      await append(memory, said('a'), said('b'));
      deepStrictEqual(await all(factory('s')), [said('c'), said('a'), said('b')]);
      await replace(memory);
      deepStrictEqual(await all(memory), []);
      deepStrictEqual(await load(factory('t')), [said('t')]);
    },
  },
];
