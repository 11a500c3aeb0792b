import { opendir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isStored } from './directories-in.js';
import { isGone } from './failure.js';
import { segmentNumbers, segmentPath } from './segments.js';

/** The name of the directory of a call, and when its last file was written to, in milliseconds since the epoch. */
interface DatedName {
  readonly name: string;
  readonly at: number;
}

/** Names that are held at once: all calls that most stores have. A directory of more is looked through once for each so many. */
const usualMost = 50_000;

/** Calls that are looked at at the same time. */
const together = 32;

/** Emits the names of the directories of calls, the one that was last written to first. One that is written to meanwhile may be left out. */
export async function* newestCalls(root: string, most = usualMost): AsyncGenerator<string> {
  for (let last: DatedName | undefined; ;) {
    const found = await newestBehind(root, last, most);
    for (const { name } of found) yield name;
    last = found.at(-1);
    if (last === undefined || found.length < most) return;
  }
}

const newestBehind = async (
  root: string,
  last: DatedName | undefined,
  most: number,
): Promise<readonly DatedName[]> => {
  let found: DatedName[] = [];
  for await (const names of namesIn(root)) {
    const dated = await Promise.all(names.map((name) => datedName(root, name)));
    const behind = dated
      .flatMap((it) => it ?? [])
      .filter((it) => last === undefined || order(last, it) < 0);
    found.push(...behind);
    if (found.length > 2 * most) found = found.sort(order).slice(0, most);
  }
  return found.sort(order).slice(0, most);
};

const order = (one: DatedName, other: DatedName): number =>
  other.at - one.at || (one.name < other.name ? -1 : Number(one.name > other.name));

async function* namesIn(root: string): AsyncGenerator<readonly string[]> {
  const names: string[] = [];
  try {
    for await (const entry of await opendir(root, { bufferSize: 256 })) {
      if (!isStored(entry)) continue;
      names.push(entry.name);
      if (names.length === together) yield names.splice(0);
    }
  } catch (error) {
    if (!isGone(error)) throw error;
  }
  yield names;
}

/** Nothing, where there is no call, or no more. */
const datedName = async (root: string, name: string): Promise<DatedName | undefined> => {
  const path = join(root, name);
  const last = await segmentNumbers(path).then(
    (numbers) => numbers.at(-1),
    // Who lists it says that it cannot be read.
    () => 0,
  );
  if (last === undefined) return undefined;
  const at = await timeOf(last === 0 ? path : segmentPath(path, last));
  return at === undefined ? undefined : { name, at };
};

const timeOf = async (path: string): Promise<number | undefined> => {
  try {
    return (await stat(path)).mtimeMs;
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
};
