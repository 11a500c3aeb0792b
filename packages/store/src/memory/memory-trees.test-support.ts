import { deepStrictEqual } from 'node:assert/strict';
import {
  isMillraceError,
  type Memory,
  type MemoryChange,
  type MemoryFactory,
  type Message,
  type MessageTree,
  type Place,
} from 'millrace';
import {
  appendedTo,
  emptyTree,
  lineOf,
  movedTo,
  pathTo,
  siblingsOf,
  withoutBelow,
} from 'millrace/values';
import fc from 'fast-check';
import { lastValueFrom, type Observable } from 'rxjs';

const said = (id: string): Message => ({
  id,
  role: 'user',
  content: [{ type: 'text', text: `I am ${id.slice(0, 20)}.` }],
});

/** The ids of messages, some of which are those of calls: `c1`, `c1/deep`, and a long one. */
const pool = [
  ...['c1/input/0', 'c1/1', 'c1/2', 'c10/1', 'c1/deep/1', 'c_/1', 'c%/1', '__proto__', 'C1/1'],
  ...['\u0000/1', 'é/1', "it's", 'a\ud800', `${'x'.repeat(140)}/1`, `${'x'.repeat(140)}/2`],
];
const calls = ['c1', 'c', 'c_', 'c%', 'c1/deep', 'x'.repeat(140), 'x'.repeat(139), 'é', '', 'none'];

const ids = fc.array(fc.constantFrom(...pool), { maxLength: 4 });
const place = fc.constantFrom(...pool, ...calls);

const step = fc.record({
  /** Which of two memories does it. */
  by: fc.nat(1),
  act: fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        type: fc.constant('append' as const),
        ids,
        after: fc.oneof(place, fc.constantFrom(null, undefined), fc.nat(20)),
        replaces: fc.option(fc.oneof(place, fc.nat(20)), { nil: undefined }),
      }),
    },
    fc.record({
      type: fc.constantFrom('moveHead' as const, 'remove' as const),
      at: fc.oneof(place, fc.nat(20)),
    }),
    fc.record({
      type: fc.constant('replace' as const),
      ids: fc.uniqueArray(fc.constantFrom(...pool), { maxLength: 4 }),
    }),
  ),
});

type Act = (typeof step extends fc.Arbitrary<infer Step> ? Step : never)['act'];

/** A number stands for a message that is there. */
const idOf = (tree: MessageTree, at: string | number): string => {
  if (typeof at === 'string') return at;
  return tree.entries[at % Math.max(1, tree.entries.length)]?.message.id ?? 'none';
};

const placeOf = (
  tree: MessageTree,
  { after, replaces }: Extract<Act, { type: 'append' }>,
): Place => ({
  ...(after !== undefined && { after: after === null ? null : idOf(tree, after) }),
  ...(replaces !== undefined && { replaces: idOf(tree, replaces) }),
});

/** What a step makes of a tree, and what a memory emits. */
const expected = (
  tree: MessageTree,
  act: Act,
): readonly [MessageTree, MemoryChange | undefined] => {
  const changed = (now: MessageTree, more: Partial<MemoryChange>) =>
    [now, { appended: [], removed: [], ...more, head: { from: tree.head, to: now.head } }] as const;
  switch (act.type) {
    case 'append': {
      const messages = act.ids.map(said);
      const { tree: now, after } = appendedTo(tree, messages, placeOf(tree, act));
      return changed(now, { appended: messages, after });
    }
    case 'moveHead':
      return changed(movedTo(tree, idOf(tree, act.at)), {});
    case 'remove': {
      const now = withoutBelow(tree, idOf(tree, act.at));
      const left = new Set(now.entries.map(({ message }) => message.id));
      const removed = tree.entries.map(({ message }) => message.id).filter((id) => !left.has(id));
      return changed(now, { removed });
    }
    case 'replace':
      return [lineOf(act.ids.map(said)), undefined];
  }
};

const made$ = (memory: Required<Memory>, tree: MessageTree, act: Act): Observable<unknown> => {
  switch (act.type) {
    case 'append':
      return memory.append$(act.ids.map(said), placeOf(tree, act));
    case 'moveHead':
      return memory.moveHead$(idOf(tree, act.at));
    case 'remove':
      return memory.remove$(idOf(tree, act.at));
    case 'replace':
      return memory.replace$(lineOf(act.ids.map(said)));
  }
};

/** The value of the work, or the code of its error. */
const outcome = async (work: () => unknown): Promise<unknown> => {
  try {
    return await work();
  } catch (error) {
    return isMillraceError(error) ? error.code : error;
  }
};

const last = (work$: Observable<unknown>): Promise<unknown> =>
  lastValueFrom(work$, { defaultValue: undefined });

/**
 * Plays random changes of a conversation by two memories that share a store, and compares what they emit, and what both
 * have after each change, with the pure functions on trees.
 */
export const checkTrees = async (
  create: () => Promise<readonly [MemoryFactory, MemoryFactory]>,
  numRuns: number,
): Promise<void> => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 16 }), async (steps) => {
      const memories = (await create()).map((factory) => factory('s') as Required<Memory>);
      let tree = emptyTree;
      for (const { by, act } of steps) {
        const memory = memories[by];
        if (memory === undefined) throw new Error('There are two.');
        const before = tree;
        const wanted = await outcome(() => {
          const [now, change] = expected(before, act);
          tree = now;
          return change;
        });
        deepStrictEqual(await outcome(() => last(made$(memory, before, act))), wanted);
        for (const reader of memories) {
          deepStrictEqual(await last(reader.all$()), tree);
          deepStrictEqual(await last(reader.load$()), pathTo(tree));
          deepStrictEqual(await last(reader.last$()), tree.head);
        }
        for (const at of [
          'c1',
          'c_',
          'x'.repeat(140),
          ...tree.entries.map((it) => it.message.id),
        ]) {
          deepStrictEqual(
            await outcome(() => last(memory.load$({ at }))),
            await outcome(() => pathTo(tree, at)),
          );
          deepStrictEqual(
            await outcome(() => last(memory.last$({ at }))),
            await outcome(() => pathTo(tree, at).at(-1)?.id),
          );
          deepStrictEqual(
            await outcome(() => last(memory.branches$(at))),
            await outcome(() => siblingsOf(tree, at)),
          );
        }
      }
    }),
    { numRuns },
  );
};
