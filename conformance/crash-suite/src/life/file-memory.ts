import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { MemoryFactory, Message } from 'millrace';
import { defer } from 'rxjs';

/**
 * Keeps conversations in a directory, so that they outlast the process: each a file, which is replaced as a whole. One process uses it at a time, and waits for an
 * append before the next one of the same conversation.
 */
export const fileMemory =
  (directory: string): MemoryFactory =>
  (sessionId) => {
    const path = join(directory, `${createHash('sha256').update(sessionId).digest('hex')}.json`);
    return {
      load$: () => defer(() => read(path)),
      append$: (added) =>
        defer(async () => {
          const kept = await read(path);
          const messages = [...kept, ...added].filter(
            ({ id }, index, all) => all.findIndex((it) => it.id === id) === index,
          );
          await mkdir(directory, { recursive: true });
          await writeFile(`${path}.new`, JSON.stringify(messages));
          await rename(`${path}.new`, path);
        }),
    };
  };

const read = async (path: string): Promise<readonly Message[]> => {
  if (!existsSync(path)) return [];
  const kept: unknown = JSON.parse(await readFile(path, 'utf8'));
  return areMessages(kept) ? kept : [];
};

/** The core looks at each of them. */
const areMessages = (kept: unknown): kept is readonly Message[] => Array.isArray(kept);
