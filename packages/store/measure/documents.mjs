// Measures an index of documents: `node packages/store/measure/documents.mjs [--chunks 10000] [--dimensions 512]`.
import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import process from 'node:process';
import console from 'node:console';
import { parseArgs } from 'node:util';
import { startPostgres } from '@millrace/postgres-server';
import { documentIndex } from '@millrace/store/documents';
import { openPostgres } from '@millrace/store/postgres';
import { openSqlite } from '@millrace/store/sqlite';
import { lastValueFrom, of } from 'rxjs';

const { values } = parseArgs({
  options: {
    chunks: { type: 'string', default: '10000' },
    dimensions: { type: 'string', default: '512' },
    queries: { type: 'string', default: '100' },
  },
});
const [chunks, dimensions, queries] = [values.chunks, values.dimensions, values.queries].map(
  Number,
);
const perDocument = 20;

// ---------------------------------------------------------------- documents

/** The same numbers in each run. */
function randomOf(seed) {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32;
    return state / 2 ** 32;
  };
}

const random = randomOf(1);
const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
const unit = (vector) => {
  const length = Math.hypot(...vector);
  return vector.map((value) => value / length);
};
const topics = Array.from({ length: 200 }, () => Array.from({ length: dimensions }, normal));
const near = (topic, spread) => unit(topic.map((value) => value + spread * normal()));

/**
 * A word of a vocabulary of 20,000, as often as its rank in a natural language (Zipf). The 100 most frequent are stop
 * words there.
 */
const word = () => `word${Math.floor(100 * 200 ** random())}`;
const sentence = (length) => Array.from({ length }, word).join(' ');

const vectors = new Map();
function chunkOf(at) {
  const text = `chunk${at} ${sentence(180)}.`;
  vectors.set(text, near(topics[Math.floor(random() * topics.length)], 0.8));
  return text;
}

const documents = Array.from({ length: Math.ceil(chunks / perDocument) }, (_, nth) => {
  const count = Math.min(perDocument, chunks - nth * perDocument);
  const texts = Array.from({ length: count }, (_, at) => chunkOf(nth * perDocument + at));
  let from = 0;
  const spans = texts.map((text) => {
    const span = { from, to: from + text.length };
    from += text.length + 1;
    return span;
  });
  return { source: `${nth}.md`, text: texts.join('\n'), chunks: spans };
});

// Queries whose words occur nowhere have results of the search by meaning only.
const meanings = Array.from({ length: queries }, (_, at) => `nowhere${at}`);
for (const text of meanings)
  vectors.set(text, near(topics[Math.floor(random() * topics.length)], 0.8));
const sentences = Array.from({ length: queries }, () => sentence(8));
for (const text of sentences)
  vectors.set(text, near(topics[Math.floor(random() * topics.length)], 0.8));
const embedder = {
  id: `measured/${dimensions}`,
  embed$: (texts) => of(texts.map((it) => vectors.get(it))),
};

const stored = [...vectors].filter(([text]) => text.startsWith('chunk'));
const dot = (a, b) => a.reduce((sum, value, at) => sum + value * b[at], 0);
function nearest(query) {
  const vector = vectors.get(query);
  const scores = stored.map(([text, it]) => [text, dot(it, vector)]);
  return scores
    .sort((a, b) => b[1] - a[1])
    .slice(0, 10)
    .map(([text]) => text);
}

// ---------------------------------------------------------------- measures

async function timed(work) {
  const start = performance.now();
  const result = await work();
  return { ms: performance.now() - start, result };
}

async function latencies(index, texts) {
  const times = [];
  const results = [];
  for (const text of [texts[0], ...texts]) {
    const { ms, result } = await timed(() => lastValueFrom(index.retrieve$({ text, limit: 10 })));
    times.push(ms);
    results.push(result.map((passage) => passage.text));
  }
  const sorted = times.slice(1).sort((a, b) => a - b);
  const at = (share) => `${sorted[Math.floor(share * (sorted.length - 1))].toFixed(1)} ms`;
  return { p50: at(0.5), p95: at(0.95), results: results.slice(1) };
}

async function measure(name, store, options) {
  const index = documentIndex(store, { threshold: 0, ...options });
  const add = () => lastValueFrom(index.add$(documents));
  const first = await timed(add);
  const again = await timed(add);
  const words = await latencies(index, sentences);
  const row = {
    store: name,
    chunks: first.result.chunks,
    'index s': (first.ms / 1_000).toFixed(1),
    'again s': (again.ms / 1_000).toFixed(1),
    'query p50': words.p50,
    'query p95': words.p95,
  };
  if (options.embedder === undefined) return row;
  const byMeaning = await latencies(index, meanings);
  const hits = byMeaning.results.map((found, at) => {
    const best = new Set(nearest(meanings[at]));
    return found.filter((text) => best.has(text)).length / 10;
  });
  const recall = hits.reduce((sum, hit) => sum + hit, 0) / hits.length;
  return {
    ...row,
    'meaning p50': byMeaning.p50,
    'meaning p95': byMeaning.p95,
    'recall@10': recall.toFixed(3),
  };
}

const directory = mkdtempSync(join(tmpdir(), 'measure-'));
const server = await startPostgres();
const close = (store) => lastValueFrom(store.close$(), { defaultValue: undefined });
try {
  const rows = [];
  const sqlite = openSqlite(join(directory, 'index.db'));
  rows.push(await measure('SQLite, words', sqlite, { name: 'words' }));
  rows.push(await measure('SQLite, hybrid', sqlite, { name: 'hybrid', embedder }));
  await close(sqlite);
  const postgres = openPostgres(server.url);
  rows.push(await measure('Postgres, words', postgres, { name: 'words' }));
  await close(postgres);
  console.log(
    `Node ${process.version}, ${cpus().length} × ${cpus()[0].model}, ${dimensions} dimensions`,
  );
  console.table(rows);
  const start = performance.now();
  for (const query of meanings.slice(0, 5)) nearest(query);
  console.log(
    `Brute force in JavaScript: ${((performance.now() - start) / 5).toFixed(1)} ms per query.`,
  );
} finally {
  rmSync(directory, { recursive: true });
  await server.stop();
}
