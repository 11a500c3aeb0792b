// Bytes and CPU time of appending to a conversation and of loading it: node packages/store/measure/conversations.mjs [files|postgres]
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import process from 'node:process';
import console from 'node:console';
import { openFiles } from '@millrace/store';
import { lastValueFrom } from 'rxjs';

const kind = process.argv[2] ?? 'files';
const rounds = 400;

const message = (id) => ({
  id,
  role: 'user',
  content: [{ type: 'text', text: `${id}: `.padEnd(400, 'x') }],
});

const open = async () => {
  if (kind === 'files') {
    const directory = mkdtempSync(join(tmpdir(), 'conversations-'));
    const bytes = () =>
      readdirSync(directory, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);
    return {
      store: openFiles(directory),
      bytes,
      end: () => rmSync(directory, { recursive: true }),
    };
  }
  const { startPostgres } = await import('@millrace/postgres-server');
  const { openPostgres } = await import('@millrace/store/postgres');
  const pg = (await import('pg')).default;
  const server = await startPostgres();
  const store = openPostgres(server.url, { pool: { max: 1 } });
  const admin = new pg.Client(server.url);
  await admin.connect();
  const bytes = async () => {
    const { rows } = await admin.query(
      `select sum(pg_column_size(message.*)) + (select sum(pg_column_size(conversation.*)) from millrace.conversations as conversation) as bytes from millrace.messages as message`,
    );
    return Number(rows[0].bytes);
  };
  const end = async () => {
    await admin.end();
    await lastValueFrom(store.close$(), { defaultValue: undefined });
    await server.stop();
  };
  return { store, bytes, end };
};

const costOf = async (count, work) => {
  const cpu = process.cpuUsage();
  const from = performance.now();
  for (let at = 0; at < count; at += 1) await work(at);
  const { user, system } = process.cpuUsage(cpu);
  const per = (value) => (value / count).toFixed(3);
  return { cpuMs: per((user + system) / 1000), ms: per(performance.now() - from) };
};

const { store, bytes, end } = await open();
const last = (source$) => lastValueFrom(source$, { defaultValue: undefined });
const isTree = store.memory('probe').branches$ !== undefined;
await last(store.memory('probe').append$([message('a')]));

for (const branched of isTree ? [false, true] : [false]) {
  const memory = store.memory(branched ? 'branched' : 'line');
  const before = await bytes();
  // A call appends its question and its answer. With branches, each fourth question is asked again.
  const append = await costOf(rounds, (at) => {
    const own = [message(`c${at}/input/0`), message(`c${at}/1`)];
    const after =
      branched && at % 4 === 3
        ? { after: `c${at - 2}/1`, replaces: `c${at - 1}/input/0` }
        : undefined;
    return last(memory.append$(own, after));
  });
  const stored = (await bytes()) - before;
  const known = await costOf(50, () => last(memory.load$()));
  const fresh = await costOf(50, () => last(store.memory(branched ? 'branched' : 'line').load$()));
  const at = isTree ? await costOf(50, () => last(memory.load$({ at: 'c200/1' }))) : undefined;
  console.log(
    JSON.stringify({
      kind,
      branched,
      messages: rounds * 2,
      bytesPerAppend: stored / rounds,
      append,
      known,
      fresh,
      at,
    }),
  );
}
await end();
