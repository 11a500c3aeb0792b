import { deepStrictEqual, rejects, strictEqual } from 'node:assert/strict';
import type { Memory, MemoryFactory, Message } from '@millrace/core';
import type { Check } from '@millrace/core/testing';
import { lineOf } from '@millrace/core/values';
import { EMPTY, lastValueFrom } from 'rxjs';

const said = (id: string, text = id): Message => ({
  id,
  role: 'user',
  content: [{ type: 'text', text }],
});

const load = (memory: Memory): Promise<readonly Message[]> => lastValueFrom(memory.load$());

const append = (memory: Memory, ...messages: readonly Message[]): Promise<unknown> =>
  lastValueFrom(memory.append$(messages), { defaultValue: undefined });

const idsIn = async (memory: Memory): Promise<readonly string[]> =>
  (await load(memory)).map(({ id }) => id);

/** Checks for memories that several processes share. `create` opens an empty store twice. */
export const sharedMemoryContract = (
  create: () => Promise<readonly [MemoryFactory, MemoryFactory]>,
): readonly Check[] => [
  {
    name: 'refuses who adds to what has gone on since it was loaded',
    run: async () => {
      const [one, other] = (await create()).map((factory) => factory('s'));
      if (one === undefined || other === undefined) throw new Error('There are two.');
      await append(one, said('a'));
      deepStrictEqual([await idsIn(one), await idsIn(other)], [['a'], ['a']]);
      await append(one, said('b'));
      await append(one, said('c'), said('d'));
      await rejects(append(other, said('x'), said('y')), { code: 'conflict', retryable: true });
      await rejects(append(other, said('b'), said('y')), { code: 'conflict' });
      deepStrictEqual(await idsIn(other), ['a', 'b', 'c', 'd']);
      await append(other, said('x'));
      deepStrictEqual(await idsIn(one), ['a', 'b', 'c', 'd', 'x']);
    },
  },
  {
    name: 'adds once for who repeats what was not answered to',
    run: async () => {
      const [one, other] = (await create()).map((factory) => factory('s'));
      if (one === undefined || other === undefined) throw new Error('There are two.');
      await load(one);
      await append(other, said('a'), said('b'));
      await append(one, said('a'), said('b'));
      await append(one, said('c'));
      deepStrictEqual(await idsIn(other), ['a', 'b', 'c']);
    },
  },
  {
    name: 'refuses who adds to what was replaced since it was loaded, by as many messages or none',
    run: async () => {
      const [one, other] = (await create()).map((factory) => factory('s'));
      if (one === undefined || other === undefined) throw new Error('There are two.');
      await append(one, said('a'), said('b'));
      for (const replacing of [[said('c'), said('d')], []]) {
        await load(other);
        await load(one);
        await lastValueFrom(one.replace$?.(lineOf(replacing)) ?? EMPTY, {
          defaultValue: undefined,
        });
        await rejects(append(other, said('x')), { code: 'conflict' });
        await append(one, said('y'));
        deepStrictEqual(await load(other), [...replacing, said('y')]);
      }
    },
  },
  {
    name: 'replaces a conversation that others add to, with all that they are told is added behind it',
    run: async () => {
      const factories = await create();
      const [one, other] = factories.map((factory) => factory('s'));
      if (one === undefined || other === undefined) throw new Error('There are two.');
      const adding = Array.from({ length: 80 }, (_, at) => said(`m${at}`)).reduce(
        (before, message) => before.then(() => append(other, message)),
        Promise.resolve<unknown>(undefined),
      );
      for (const id of ['a', 'b', 'c']) {
        await lastValueFrom(one.replace$?.(lineOf([said(id)])) ?? EMPTY, {
          defaultValue: undefined,
        });
      }
      await adding;
      const [first, ...rest] = await idsIn(factories[1]('s'));
      strictEqual(first, 'c');
      deepStrictEqual(
        rest,
        Array.from({ length: rest.length }, (_, at) => `m${80 - rest.length + at}`),
      );
    },
  },
  {
    name: 'adds to what is there for who has loaded nothing',
    run: async () => {
      const [one, other] = (await create()).map((factory) => factory('s'));
      if (one === undefined || other === undefined) throw new Error('There are two.');
      await append(one, said('a'));
      await append(other, said('a'), said('b'));
      await append(one, said('c'));
      deepStrictEqual(await idsIn(other), ['a', 'b', 'c']);
    },
  },
  {
    name: 'loses nothing and mixes nothing up, however many add at the same time',
    run: async () => {
      const factories = await create();
      const adding = Array.from({ length: 12 }, async (_, at) => {
        const memory = factories[at % 2]?.('s');
        if (memory !== undefined) await append(memory, said(`${at}a`), said(`${at}b`));
      });
      await Promise.all(adding);
      const ids = await idsIn(factories[1]('s'));
      strictEqual(new Set(ids).size, 24);
      for (let at = 0; at < ids.length; at += 2) {
        strictEqual(ids[at]?.replace('a', 'b'), ids[at + 1]);
      }
    },
  },
  {
    name: 'keeps long conversations, and whatever is in them',
    run: async () => {
      const [one, other] = await create();
      const texts = ['\u0000', '\ud800', '🍵', 'x'.repeat(200_000), '\ufdd00000'];
      const messages = Array.from({ length: 70 }, (_, at) =>
        said(`m${at}\u0000`, texts[at % texts.length]),
      );
      const memory = one('s');
      await load(memory);
      for (const message of messages) await append(memory, message);
      deepStrictEqual(await load(other('s')), messages);
    },
  },
];
