import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { startPostgres, type TestServer } from '@millrace/postgres-server';
import pg from 'pg';
import { closeStore } from '../close-store.test-support.js';
import { openPostgres } from '../postgres/open-postgres.js';
import type { DatabaseStore } from '../store.js';
import { documentIndex } from './document-index.js';
import { all, documentOf, last, notingEmbedder } from './documents.test-support.js';

// A disk that others use, too, takes its time to keep what it is given.
jest.setTimeout(240_000);

let server: TestServer;
let admin: pg.Client;
const stores: DatabaseStore[] = [];
beforeAll(async () => {
  server = await startPostgres();
  admin = new pg.Client(server.url);
  await admin.connect();
}, 180_000);
afterEach(async () => {
  await Promise.all(stores.splice(0).map((store) => closeStore(store)));
});
afterAll(async () => {
  await admin.end();
  await server.stop();
});

const open = (schema: string, options: { readonly retryMs?: number } = {}): DatabaseStore => {
  const store = openPostgres(server.url, { schema, ...options });
  stores.push(store);
  return store;
};

const numbered = (count: number, text: string) =>
  Array.from({ length: count }, (_, at) => documentOf(`${at}.md`, `${text}\nnumber${at}`));

const sum = (counts: readonly number[]): number => counts.reduce((all, count) => all + count, 0);

describe('documentIndex on a server', () => {
  it('is made once, and indexes each document once, however many processes add to it', async () => {
    const runs = Array.from({ length: 4 }, () =>
      all(documentIndex(open('many')).add$(numbered(20, 'mill'))),
    );
    const results = await Promise.all(runs);
    expect(sum(results.map((progress) => progress.at(-1)?.indexed ?? 0))).toBe(20);
    for (const progress of results) expect(progress).toHaveLength(20);
    const index = documentIndex(open('many'));
    expect(await last(index.sources$())).toHaveLength(20);
    expect(await last(index.retrieve$({ text: 'number7' }))).toMatchObject([{ source: '7.md' }]);
    const { rows } = await admin.query('select count(*)::int as count from many.chunks');
    expect(rows).toEqual([{ count: 40 }]);
  });

  it('has the whole content of one of two processes that add different ones', async () => {
    const contents = ['gate', 'wheel'];
    await Promise.all(
      contents.map((text) => all(documentIndex(open('two')).add$(numbered(20, `${text} ${text}`)))),
    );
    const { rows } = await admin.query<{ texts: string[] }>(
      'select array_agg(text order by position) as texts from two.chunks group by document',
    );
    expect(rows).toHaveLength(20);
    for (const { texts } of rows) {
      expect(contents.map((text) => `${text} ${text}`)).toContain(texts[0]);
      expect(texts).toHaveLength(2);
    }
  });

  it('keeps the old content if the connection is lost in the middle of a replacement', async () => {
    // A repeated transaction would wait for the lock of the test, until the statement takes too long.
    const index = documentIndex(open('cut', { retryMs: 0 }));
    await all(index.add$([documentOf('a.md', 'The old mill.')]));
    // Its transaction has the document, and waits for the chunks.
    await admin.query('begin');
    await admin.query('lock table cut.chunks in share mode');
    const adding = all(index.add$([documentOf('a.md', 'The new wheel.')]));
    const isLost = expect(adding).rejects.toMatchObject({ code: 'store', retryable: true });
    const cut = `select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and wait_event_type = 'Lock'`;
    while ((await admin.query(cut)).rowCount === 0);
    await isLost;
    await admin.query('commit');
    expect(await last(index.retrieve$({ text: 'mill wheel' }))).toMatchObject([
      { text: 'The old mill.' },
    ]);
    await all(index.add$([documentOf('a.md', 'The new wheel.')]));
    expect(await last(index.retrieve$({ text: 'mill wheel' }))).toMatchObject([
      { text: 'The new wheel.' },
    ]);
  });

  it('errors with conflict if the index is removed while documents are added to it', async () => {
    const index = documentIndex(open('gone'));
    async function* removing() {
      yield* numbered(32, 'mill');
      await last(documentIndex(open('gone')).remove$('all'));
      yield* numbered(1, 'wheel');
    }
    await expect(all(index.add$(removing()))).rejects.toMatchObject({
      code: 'conflict',
      retryable: true,
    });
    expect(await last(index.sources$())).toEqual([]);
    expect(await all(index.add$(numbered(1, 'wheel')))).toHaveLength(1);
  });

  it('stems words of a language, and refuses another one', async () => {
    const store = open('languages');
    const index = documentIndex(store, { name: 'german', language: 'german' });
    await all(index.add$([documentOf('a', 'Die Mühlen mahlen langsam.')]));
    expect(await last(index.retrieve$({ text: 'Was mahlt die Mühle?' }))).toHaveLength(1);
    const other = documentIndex(store, { name: 'german' });
    await expect(last(other.retrieve$({ text: 'Mühle' }))).rejects.toMatchObject({
      code: 'config',
      message: expect.stringContaining('german'),
    });
    const wrong = documentIndex(store, { name: 'wrong', language: 'klingon' });
    await expect(all(wrong.add$([documentOf('a', 'mill')]))).rejects.toMatchObject({
      code: 'store',
    });
    const plain = documentIndex(store, { name: 'wrong' });
    expect(await all(plain.add$([documentOf('a', 'mill')]))).toHaveLength(1);
  });

  it('refuses an embedder without pgvector, and searches words of an index that has vectors', async () => {
    const { rows } = await admin.query(`select from pg_available_extensions where name = 'vector'`);
    if (rows.length > 0) return;
    const embedder = notingEmbedder();
    const index = documentIndex(open('plain'), { embedder });
    const refusal = { code: 'config', message: expect.stringContaining('pgvector') };
    await expect(all(index.add$(numbered(1, 'mill')))).rejects.toMatchObject(refusal);
    await all(documentIndex(open('plain')).add$(numbered(1, 'mill')));
    // As after a backup was restored on another server.
    await admin.query(`update plain.document_indexes set embedder = 'letters', dimensions = 10`);
    const reports: string[] = [];
    const query = { text: 'mill', report: (warning: string) => reports.push(warning) };
    expect(await last(index.retrieve$(query))).toMatchObject([{ text: 'mill' }]);
    expect(reports).toEqual([expect.stringContaining('pgvector')]);
    expect(embedder.asked).toEqual([]);
  });

  it.each(['document_versions', 'vector_versions'])(
    'S4: refuses tables of another format version: %s',
    async (versions) => {
      const schema = `other_${versions}`;
      await all(documentIndex(open(schema)).add$([]));
      const table = `${schema}.${versions}`;
      await admin.query(`create table if not exists ${table} (version integer)`);
      await admin.query(`delete from ${table}`);
      await admin.query(`insert into ${table} (version) values (2)`);
      const index = documentIndex(open(schema));
      const listed = last(index.sources$());
      const { rows } = await admin.query(
        `select from pg_available_extensions where name = 'vector'`,
      );
      if (versions === 'vector_versions' && rows.length === 0) return await listed;
      await expect(listed).rejects.toMatchObject({
        code: 'invalidState',
        message: expect.stringContaining(`${table} has format version 2`),
      });
    },
  );
});
