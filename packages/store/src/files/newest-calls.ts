import { join } from 'node:path';
import { directoriesIn } from './directories-in.js';
import { statIn } from './failure.js';
import type { NamedCall } from './list-calls.js';
import { segmentNumbers, segmentPath } from './segments.js';

/** Calls that are looked at at the same time. */
const together = 32;

/** Emits the names of the directories of calls, the one that was last written to first. One that is written to meanwhile may be left out. */
export async function* newestCalls(root: string): AsyncGenerator<NamedCall> {
  const names = await directoriesIn(root);
  const dated: { readonly name: string; readonly at: number }[] = [];
  for (let first = 0; first < names.length; first += together) {
    const some = names.slice(first, first + together).map((name) => datedName(root, name));
    dated.push(...(await Promise.all(some)).flatMap((it) => it ?? []));
  }
  yield* dated.sort((a, b) => b.at - a.at);
}

/** Nothing, where there is no call, or no more. */
const datedName = async (root: string, name: string) => {
  const path = join(root, name);
  // Whoever lists one that cannot be read says so.
  const last = (await segmentNumbers(path).catch(() => [0])).at(-1);
  if (last === undefined) return undefined;
  const found = await statIn(last === 0 ? path : segmentPath(path, last));
  return found && { name, at: found.mtimeMs };
};
