// The heap of a chat server after chats with a picture of 1 MB each, without what nothing refers to:
// `node packages/server/measure/chats-heap.mjs [--chats 10,100,1000] [--store files,sqlite,none]`.
import { execFileSync } from 'node:child_process';
import console from 'node:console';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import process from 'node:process';
import { setImmediate } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createAgent } from 'millrace';
import { finish, text } from 'millrace/testing';
import { chatServer } from '@millrace/server/chat';
import { openFiles } from '@millrace/store';
import { openSqlite } from '@millrace/store/sqlite';
import { lastValueFrom, of } from 'rxjs';

const { values } = parseArgs({
  options: {
    chats: { type: 'string', default: '10,100,1000' },
    store: { type: 'string', default: 'files,sqlite,none' },
    /** Prints the first one as JSON. */
    json: { type: 'boolean', default: false },
  },
});
const counts = values.chats.split(',').map(Number);
const openers = {
  files: (directory) => openFiles(join(directory, 'store')),
  sqlite: (directory) => openSqlite(join(directory, 'store.db')),
  none: () => undefined,
};
const kinds = values.store.split(',');
const unknown = kinds.find((kind) => !Object.hasOwn(openers, kind));
if (unknown !== undefined) throw new Error(`There is no store '${unknown}'.`);
if (!counts.every((count) => Number.isInteger(count) && count > 0)) {
  throw new Error('--chats needs numbers: 10,100');
}

setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc');
const memory = async () => {
  for (let times = 0; times < 5; times += 1) {
    await setImmediate();
    gc();
  }
  return process.memoryUsage();
};

const agent = createAgent({
  name: 'helper',
  model: { name: 'answering', stream$: () => of(text('A cat.'), finish()) },
});

const ask = async (server, chat) => {
  const picture = `${chat}`.padStart(8, '0').repeat(125_000);
  const parts = [
    { type: 'text', text: 'What is this?' },
    { type: 'file', mediaType: 'image/png', url: `data:image/png;base64,${picture}` },
  ];
  const response = await server.respond(
    new globalThis.Request('http://localhost/api/chat', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ id: `${chat}`, messages: [{ id: `q-${chat}`, role: 'user', parts }] }),
    }),
  );
  const answer = await response.text();
  if (!answer.includes('A cat.')) throw new Error(`${response.status}: ${answer}`);
};

const measured = async (kind, count) => {
  const directory = mkdtempSync(join(tmpdir(), 'chats-heap-'));
  const store = openers[kind](directory);
  const server = chatServer(agent, { user: () => 'ann', ...(store && { store }) });
  await ask(server, 'first');
  const before = await memory();
  const from = performance.now();
  for (let chat = 0; chat < count; chat += 1) await ask(server, chat);
  const ms = (performance.now() - from) / count;
  const after = await memory();
  await server.close({ timeoutMs: 0 });
  if (store) await lastValueFrom(store.close$(), { defaultValue: undefined });
  rmSync(directory, { recursive: true });
  const megabytes = (bytes) => (bytes / 1e6).toFixed(1);
  return {
    store: kind,
    chats: count,
    'heap before, MB': megabytes(before.heapUsed),
    'after, MB': megabytes(after.heapUsed),
    'external, MB': megabytes(after.external),
    'ms a chat': ms.toFixed(1),
  };
};

// Each in its own process: nothing is left of the one before.
const alone = (kind, count) => {
  const [file] = process.argv.slice(1);
  const given = [file, '--chats', `${count}`, '--store', kind, '--json'];
  return JSON.parse(execFileSync(process.execPath, given, { encoding: 'utf8' }));
};
if (values.json) console.log(JSON.stringify(await measured(kinds[0], counts[0])));
else console.table(kinds.flatMap((kind) => counts.map((count) => alone(kind, count))));
