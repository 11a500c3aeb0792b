import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict';
import type { Memory } from 'millrace';
import { isRecord, parsedJson } from 'millrace/values';
import { lastValueFrom } from 'rxjs';
import { startProcess } from '../writing-process.test-support.js';
import { whole } from './shared-memory.test-support.js';

/**
 * Appends two messages again and again, each time after another message, and now and then removes a branch, without an end. Prints what
 * it has done, and what it is about to remove.
 */
const branching = `
  import { lastValueFrom } from 'rxjs';
  const name = process.argv.at(-1);
  const last = (work$) => lastValueFrom(work$, { defaultValue: undefined });
  const say = (value) => process.stdout.write(JSON.stringify(value) + '\\n');
  const text = 'x'.repeat(2000);
  const ends = ['root'];
  await last(memory.append$([{ id: 'root', role: 'user', content: [] }], { after: null }));
  for (let at = 0; ; at += 1) {
    const after = ends[(at * 7) % ends.length];
    const own = ['a', 'b'].map((part) => ({ id: name + at + part, role: 'user', content: [{ type: 'text', text }] }));
    const { head } = await last(memory.append$(own, { after }));
    say({ after, ids: own.map(({ id }) => id), head });
    if (at % 5 === 4) {
      const [{ id }] = own;
      say({ removing: id });
      await last(memory.remove$(id));
      say({ removed: id });
    } else ends.push(own[1].id);
  }
`;

/**
 * Lets two processes add branches to one conversation, kills each after some lines, and checks that all that they were told is stored
 * is there, in its place and whole, and that nothing that was removed is. `opening` opens `memory`, which `open` opens
 * again afterwards.
 */
export const killWhileBranching = async (
  open: () => Memory,
  opening: string,
  parameters: readonly string[],
  lines: readonly number[],
): Promise<void> => {
  const said = await Promise.all(
    lines.map(async (count, at) => {
      let left = count;
      const name = `p${at}-`;
      const { ended } = startProcess(opening + branching, [...parameters, name], (_, child) => {
        left -= 1;
        if (left === 0) child.kill('SIGKILL');
      });
      return (await ended).map(parsedJson).filter(isRecord);
    }),
  );
  const memory = whole(open());
  const { entries, head } = await lastValueFrom(memory.all$());
  const ids = new Set(entries.map(({ message }) => message.id));
  strictEqual(ids.size, entries.length);
  ok(head !== null && ids.has(head));
  for (const spoken of said) {
    ok(spoken.length > 20);
    const removing = spoken.map(({ removing: id }) => id);
    const removed = spoken.map(({ removed: id }) => id);
    for (const { after, ids: own } of spoken) {
      if (!Array.isArray(own) || typeof after !== 'string') continue;
      const [first, second] = own.map(String);
      if (first === undefined || second === undefined) throw new Error('There are two.');
      if (removed.includes(first)) ok(!ids.has(first) && !ids.has(second));
      if (removing.includes(first) && !ids.has(first)) continue;
      const path = await lastValueFrom(memory.load$({ at: second }));
      const before = await lastValueFrom(memory.load$({ at: after }));
      deepStrictEqual(
        path.map(({ id }) => id),
        [...before.map(({ id }) => id), first, second],
      );
    }
  }
  // What nobody was told of is whole, too.
  for (const id of ids) strictEqual(id === 'root' || ids.has(id.replace(/.$/, 'b')), true);
  const next$ = memory.append$([{ id: 'next', role: 'user', content: [] }]);
  await lastValueFrom(next$, { defaultValue: undefined });
  strictEqual((await lastValueFrom(memory.load$())).at(-1)?.id, 'next');
};
