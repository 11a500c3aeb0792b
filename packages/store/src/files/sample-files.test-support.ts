import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAgent, tool } from 'millrace';
import { journal } from 'millrace/journal';
import { keepSessions, sessions } from 'millrace/sessions';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { concatMap, lastValueFrom, map, timer } from 'rxjs';
import { openFiles } from './open-files.js';

/** Writes the files of two conversations to a directory, as they are while the last call runs a tool: nothing ends it there. */
export const writeSampleFiles = async (target: string): Promise<void> => {
  const directory = await mkdtemp(join(tmpdir(), 'sample-'));
  const store = openFiles(directory);
  const filter = (path: string): boolean => !isPassing(path);
  const pay = tool({
    name: 'pay',
    description: 'Pays.',
    run: () =>
      timer(50).pipe(
        concatMap(() => cp(directory, target, { recursive: true, filter })),
        map(() => 'Paid.'),
      ),
  });
  const model = scriptedModel(
    [text('Hello.')],
    [text('Hello again.')],
    [toolCall('pay', {}, 'u1')],
    [text('Paid.')],
  );
  const durable = journal(store.calls);
  const agent = createAgent({ name: 'sample', model, tools: [pay], use: [durable] });
  const chat = sessions(agent, { memory: store.memory }).open('chat');
  await chat.call('Hi.', { callId: 'a' });
  const kept = await keepSessions(agent, store.sessions, { journal: durable }).open('kept/ü');
  await kept.call('Hi.', { callId: 'b' });
  await kept.call('Pay.', { callId: 'c/1' });
  await lastValueFrom(store.close$(), { defaultValue: undefined });
  await rm(directory, { recursive: true });
};

/** Locks name a process, and what is aside is built or removed. */
const isPassing = (path: string): boolean => /\.lock$|\.aside$/.test(path);

/** The names and lines of all files, without the ids and times that differ each time. */
export const formOfFiles = (directory: string): readonly string[] => {
  if (!existsSync(directory)) return [];
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return masked(`${path.slice(directory.length)}\n${readFileSync(path, 'utf8')}`);
    })
    .sort();
};

const masked = (text: string): string =>
  text
    .replaceAll(/\d+-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '<version>-<id>')
    .replaceAll(/(?<=ü","version":)\d+/g, '<version>')
    .replaceAll(/(?<="crc32":")[0-9a-f]{8}/g, '<sum>')
    .replaceAll(/(?<=keySeed\\":\\"\/)[0-9a-f]{16}/g, '<seed>')
    .replaceAll(/(?<=[Mm]s\\":)\d+/g, '<time>')
    .replaceAll(/\d{10,}/g, '<number>');
