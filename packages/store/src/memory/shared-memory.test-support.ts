import { deepStrictEqual, ok, rejects, strictEqual } from 'node:assert/strict';
import type { Memory, MemoryChange, MemoryFactory, Message } from 'millrace';
import type { Check } from 'millrace/testing';
import { isRecord, lineOf } from 'millrace/values';
import { EMPTY, lastValueFrom } from 'rxjs';

const said = (id: string, text = id): Message => ({
  id,
  role: 'user',
  content: [{ type: 'text', text }],
});

const load = (memory: Memory, at?: string): Promise<readonly Message[]> =>
  lastValueFrom(memory.load$(at === undefined ? {} : { at }));

const append = (memory: Memory, ...messages: readonly Message[]): Promise<unknown> =>
  lastValueFrom(memory.append$(messages), { defaultValue: undefined });

const appendAt = async (
  memory: Memory,
  after: string,
  ...messages: readonly Message[]
): Promise<MemoryChange> => {
  const change = await lastValueFrom(memory.append$(messages, { after }));
  ok(isMemoryChange(change));
  return change;
};

const isMemoryChange = (value: unknown): value is MemoryChange =>
  isRecord(value) && 'appended' in value && 'removed' in value;

const idsIn = async (memory: Memory, at?: string): Promise<readonly string[]> =>
  (await load(memory, at)).map(({ id }) => id);

/** A memory with branches. */
export const whole = (memory: Memory): Required<Memory> => {
  const { load$, last$, append$, branches$, moveHead$, remove$, all$, replace$ } = memory;
  ok(last$ && branches$ && moveHead$ && remove$ && all$ && replace$);
  return { load$, last$, append$, branches$, moveHead$, remove$, all$, replace$ };
};

/** The memory of a session, in two stores. */
const twice = async (
  create: () => Promise<readonly [MemoryFactory, MemoryFactory]>,
): Promise<readonly [Required<Memory>, Required<Memory>]> => {
  const [one, other] = await create();
  return [whole(one('s')), whole(other('s'))];
};

/** Checks for memories that several processes share. `create` opens an empty store twice. */
export const sharedMemoryContract = (
  create: () => Promise<readonly [MemoryFactory, MemoryFactory]>,
): readonly Check[] => [
  {
    name: 'makes two branches of what two processes append after one message, and tells where the head is',
    run: async () => {
      const [one, other] = await twice(create);
      await append(one, said('a'));
      deepStrictEqual([await idsIn(one), await idsIn(other)], [['a'], ['a']]);
      const won = await appendAt(one, 'a', said('b'), said('c'));
      const lost = await appendAt(other, 'a', said('x'), said('y'));
      deepStrictEqual([won.after, won.head], ['a', { from: 'a', to: 'c' }]);
      deepStrictEqual([lost.after, lost.head], ['a', { from: 'c', to: 'c' }]);
      // Each goes on where it was.
      await appendAt(one, 'c', said('d'));
      await appendAt(other, 'y', said('z'));
      for (const memory of [one, other]) {
        deepStrictEqual(await idsIn(memory), ['a', 'b', 'c', 'd']);
        deepStrictEqual(await idsIn(memory, 'z'), ['a', 'x', 'y', 'z']);
        deepStrictEqual(await lastValueFrom(memory.branches$('x')), ['b', 'x']);
      }
      await lastValueFrom(other.moveHead$('z'));
      await append(one, said('e'));
      deepStrictEqual(await idsIn(other), ['a', 'x', 'y', 'z', 'e']);
    },
  },
  {
    name: 'adds once for who repeats what was not answered to',
    run: async () => {
      const [one, other] = await twice(create);
      await load(one);
      await append(other, said('a'), said('b'));
      await append(one, said('a'), said('b'));
      await append(one, said('c'));
      deepStrictEqual(await idsIn(other), ['a', 'b', 'c']);
      await appendAt(other, 'a', said('x'), said('y'));
      await append(one, said('d'));
      const repeated = await appendAt(other, 'a', said('x'), said('y'));
      deepStrictEqual([repeated.after, repeated.head], ['a', { from: 'd', to: 'd' }]);
      deepStrictEqual(await idsIn(one, 'y'), ['a', 'x', 'y']);
      deepStrictEqual((await lastValueFrom(one.all$())).entries.length, 6);
    },
  },
  {
    name: 'refuses who appends after a message that was replaced or removed, and names the head',
    run: async () => {
      const [one, other] = await twice(create);
      await append(one, said('a'), said('b'));
      await load(other);
      await lastValueFrom(one.replace$(lineOf([said('c'), said('d')])), { defaultValue: 0 });
      const refused = { code: 'conflict', status: 409, message: /'b'.*'d'/ };
      await rejects(appendAt(other, 'b', said('x')), refused);
      await rejects(lastValueFrom(other.load$({ at: 'b' })), refused);
      await append(other, said('y'));
      deepStrictEqual(await idsIn(one), ['c', 'd', 'y']);
      await lastValueFrom(one.remove$('d'));
      await rejects(appendAt(other, 'y', said('x')), { code: 'conflict', message: /'c'/ });
      deepStrictEqual(await idsIn(other), ['c']);
      await lastValueFrom(one.remove$('c'));
      await rejects(appendAt(other, 'c', said('x')), { code: 'conflict', message: /is empty/ });
      await append(other, said('z'));
      deepStrictEqual(await idsIn(one), ['z']);
    },
  },
  {
    name: 'keeps every branch, whatever others append, move and remove at the same time',
    run: async () => {
      const factories = await create();
      const memoryAt = (at: number) => whole((factories[at % 2] ?? factories[0])('s'));
      await append(memoryAt(0), said('a'), said('b'), said('gone'), said('c'));
      const changes = await Promise.all(
        Array.from({ length: 70 }, async (_, at) => {
          if (at === 20) return lastValueFrom(memoryAt(at).remove$('gone'));
          if (at % 10 === 5) return lastValueFrom(memoryAt(at).moveHead$('b'));
          return appendAt(memoryAt(at), 'b', said(`${at}a`), said(`${at}b`));
        }),
      );
      const appended = changes.filter(isMemoryChange).filter(({ after }) => after === 'b');
      strictEqual(appended.length, 62);
      const tree = await lastValueFrom(memoryAt(1).all$());
      strictEqual(tree.entries.length, 2 + 2 * 62);
      for (const { appended: own } of appended) {
        const [first, second] = own.map(({ id }) => id);
        deepStrictEqual(await idsIn(memoryAt(0), second), ['a', 'b', first, second]);
      }
      // A head that an append moved was where it says.
      const moves = changes.filter(isMemoryChange).flatMap(({ head }) => head ?? []);
      ok(moves.some(({ to }) => to === tree.head));
    },
  },
  {
    name: 'replaces a conversation that others add to, with all that they are told is added behind it',
    run: async () => {
      const factories = await create();
      const [one, other] = [factories[0]('s'), factories[1]('s')];
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
      const [one, other] = await twice(create);
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
