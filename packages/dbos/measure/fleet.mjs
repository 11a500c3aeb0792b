// Measures steps on plain Postgres and on DBOS, with 1 to 3 processes:
// `node packages/dbos/measure/fleet.mjs [--calls 300] [--turns 5] [--at-once 20] [--model-ms 0] [--chunks 1] [--without-deltas] [--followers]`.
import { fork } from 'node:child_process';
import console from 'node:console';
import { readdirSync, readFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { performance } from 'node:perf_hooks';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { createAgent, tool } from 'millrace';
import { journal } from 'millrace/journal';
import { finish, text, toolCall } from 'millrace/testing';
import { openDbos } from '@millrace/dbos';
import { startPostgres } from '@millrace/postgres-server';
import { openPostgres } from '@millrace/store/postgres';
import pg from 'pg';
import {
  concat,
  concatMap,
  firstValueFrom,
  from,
  lastValueFrom,
  map,
  mergeMap,
  range,
  timer,
  toArray,
} from 'rxjs';

const { values } = parseArgs({
  options: {
    calls: { type: 'string', default: '300' },
    turns: { type: 'string', default: '5' },
    'at-once': { type: 'string', default: '20' },
    'model-ms': { type: 'string', default: '0' },
    chunks: { type: 'string', default: '1' },
    'without-deltas': { type: 'boolean', default: false },
    followers: { type: 'boolean', default: false },
    processes: { type: 'string', default: '1,2,3' },
    worker: { type: 'string' },
    url: { type: 'string', default: '' },
    help: { type: 'boolean', short: 'h' },
  },
});
const calls = Number(values.calls);
const turns = Number(values.turns);
const atOnce = Number(values['at-once']);
const modelMs = Number(values['model-ms']);
const chunkCount = Number(values.chunks);
/** call, prepare, open and reply; for each turn with a tool its message, intent and result; and the last message. */
const stepsPerCall = 4 + 3 * turns + 1;

const withoutDeltas = values['without-deltas'] && {
  events: ({ type }) => type !== 'reasoningChunk',
};
// The server of the tests takes 50 connections.
const schemas = {
  store: { schema: 'measured', pool: { max: 5 }, ...withoutDeltas },
  schema: 'measured_dbos',
  pool: { max: 5 },
};

function agent() {
  const look = tool({ name: 'look', description: 'Looks.', run: () => 'Two mills, both running.' });
  const model = {
    name: 'scripted',
    stream$: ({ messages }) => {
      const done = messages.filter(({ role }) => role === 'tool').length;
      const words = Array.from({ length: chunkCount - 1 }, () => text('Grinding on. '));
      const last =
        done < turns ? [toolCall('look', { at: done }), finish()] : [text('Two mills.'), finish()];
      if (modelMs === 0) return from([...words, ...last]);
      const gapMs = modelMs / chunkCount;
      return concat(
        from(words).pipe(concatMap((word) => timer(gapMs).pipe(map(() => word)))),
        timer(gapMs).pipe(mergeMap(() => last)),
      );
    },
  };
  return createAgent({
    name: 'clerk',
    model,
    tools: [look],
    limits: { maxIterations: turns + 2 },
  });
}

if (values.worker !== undefined) await work(values.worker);
else await measure();

/** One process: runs its share of the calls, or works for the engine until it is told to end. */
async function work(kind) {
  const told = (what) =>
    new Promise((resolve) => process.on('message', (it) => it === what && resolve()));
  const ended = told('end');
  if (kind === 'dbos') {
    const engine = openDbos(values.url, schemas);
    const started = new Map();
    const elapsed = [];
    engine.work$([{ agent: agent(), concurrency: atOnce }]).subscribe((notice) => {
      if (notice.type === 'warning' || notice.type === 'recovered') console.error(notice);
      if (notice.type === 'ready') process.send('ready');
      if (notice.type === 'started') started.set(notice.callId, Date.now());
      if (notice.type !== 'ended') return;
      elapsed.push(Date.now() - started.get(notice.callId));
      process.send({ callId: notice.callId, startedAt: started.get(notice.callId) });
    });
    await told('begin');
    const before = process.cpuUsage();
    await ended;
    process.send({ cpuMs: cpuMs(before), elapsed });
    await lastValueFrom(engine.close$(), { defaultValue: undefined });
  } else {
    const store = openPostgres(values.url, schemas.store);
    const own = agent().with(journal(store.calls));
    await lastValueFrom(store.calls.driver.list$(), { defaultValue: undefined });
    process.send('ready');
    await told('begin');
    const before = process.cpuUsage();
    const elapsed = await lastValueFrom(
      range(0, calls).pipe(
        mergeMap(() => own.call$('How many mills?'), atOnce),
        map(({ elapsedMs }) => elapsedMs),
        toArray(),
      ),
    );
    process.send({ cpuMs: cpuMs(before), elapsed });
    await lastValueFrom(store.close$(), { defaultValue: undefined });
  }
  process.disconnect();
}

function cpuMs(before) {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

async function measure() {
  if (values.help === true) {
    console.log(
      'Runs calls with tools on plain Postgres and on DBOS, and prints steps per second, times of calls and costs per step.',
    );
    return;
  }
  const server = await startPostgres();
  const admin = new pg.Client(server.url);
  await admin.connect();
  const rows = [];
  try {
    const counts = values.processes.split(',').map(Number);
    // The first run warms the server; it is not counted.
    await run(server.url, admin, 'postgres', 1);
    for (const kind of ['postgres', 'dbos']) {
      for (const processes of counts) {
        const row = await run(server.url, admin, kind, processes);
        console.error(JSON.stringify(row));
        rows.push(row);
      }
    }
  } finally {
    await admin.end();
    await server.stop();
  }
  const floor = rows[0]['steps/s'];
  console.log(
    `${calls} calls of ${turns} turns with a tool, ${stepsPerCall} steps each, ${atOnce} at once per process, the model answers with ${chunkCount} chunks in ${modelMs} ms.\nNode ${process.versions.node}, ${cpus().length} cores (${cpus()[0]?.model ?? '?'}), shared with the server.\n`,
  );
  console.log(table(rows.map((row) => ({ ...row, ratio: (row['steps/s'] / floor).toFixed(2) }))));
}

/** Runs all calls once, in a new schema, and reads what they cost. */
async function run(url, admin, kind, processes) {
  for (const schema of ['measured', 'measured_dbos']) {
    await admin.query(`drop schema if exists ${schema} cascade`);
  }
  const share = Math.ceil(calls / processes);
  const file = fileURLToPath(import.meta.url);
  const options = [
    ...['--worker', kind, '--url', url, '--calls', String(kind === 'dbos' ? calls : share)],
    ...['--turns', values.turns, '--at-once', values['at-once'], '--model-ms', values['model-ms']],
    ...['--chunks', values.chunks, ...(values['without-deltas'] ? ['--without-deltas'] : [])],
  ];
  const engine = kind === 'dbos' ? openDbos(url, schemas) : undefined;
  const workers = Array.from({ length: processes }, () => fork(file, options));
  const exits = workers.map((worker) => new Promise((resolve) => worker.once('exit', resolve)));
  const next = (worker) => new Promise((resolve) => worker.once('message', resolve));
  await Promise.all(workers.map(next));
  const before = await counters(admin);
  const results = workers.map(
    (worker) =>
      new Promise((resolve) =>
        worker.on('message', (message) => message.cpuMs !== undefined && resolve(message)),
      ),
  );
  const waited = [];
  const queued = new Map();
  const begun = new Map();
  const over = new Promise((resolve) =>
    workers.forEach((worker) =>
      worker.on('message', ({ callId, startedAt }) => {
        if (callId !== undefined) begun.set(callId, startedAt);
        if (begun.size === calls) resolve();
      }),
    ),
  );
  workers.forEach((worker) => worker.send('begin'));
  const startedAt = performance.now();
  if (engine !== undefined) {
    const start = async () => {
      const queuedAt = Date.now();
      const callId = await firstValueFrom(engine.start$('clerk', 'How many mills?'));
      queued.set(callId, queuedAt);
      if (values.followers) engine.attach$(callId).subscribe();
    };
    await lastValueFrom(range(0, calls).pipe(mergeMap(start, 10)));
    await over;
    for (const [callId, at] of begun) waited.push(at - queued.get(callId));
    workers.forEach((worker) => worker.send('end'));
  }
  const own = await Promise.all(results);
  const seconds = (performance.now() - startedAt) / 1_000;
  const after = await counters(admin);
  await Promise.all(exits);
  if (engine !== undefined) await lastValueFrom(engine.close$(), { defaultValue: undefined });
  const elapsed = own.flatMap((it) => it.elapsed).toSorted((a, b) => a - b);
  waited.sort((a, b) => a - b);
  const steps = elapsed.length * stepsPerCall;
  const running = elapsed.reduce((sum, it) => sum + it, 0) / 1_000;
  const workerCpuMs = own.reduce((sum, it) => sum + it.cpuMs, 0);
  const per = (what) => (after[what] - before[what]) / steps;
  const perSecond = (what) => (after[what] - before[what]) / running;
  return {
    kind,
    processes,
    'steps/s': Math.round(steps / seconds),
    'calls/s': Number((elapsed.length / seconds).toFixed(1)),
    'call p50 ms': quantile(elapsed, 0.5),
    'p95 ms': quantile(elapsed, 0.95),
    'queue p50 ms': engine === undefined ? '' : quantile(waited, 0.5),
    'worker CPU ms/step': (workerCpuMs / steps).toFixed(2),
    'server CPU ms/step': per('serverCpuMs').toFixed(2),
    'transactions/step': per('transactions').toFixed(2),
    'rows/step': per('rows').toFixed(2),
    'WAL bytes/step': Math.round(per('wal')),
    'disk bytes/call': Math.round((after.disk - before.disk) / elapsed.length),
    // Of one running call, per second.
    'worker CPU ms/s': (workerCpuMs / running).toFixed(2),
    'server CPU ms/s': perSecond('serverCpuMs').toFixed(2),
    'transactions/s': perSecond('transactions').toFixed(2),
    'WAL bytes/s': Math.round(perSecond('wal')),
    'disk bytes/s': Math.round((after.disk - before.disk) / running),
  };
}

function quantile(sorted, share) {
  return Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0);
}

async function counters(admin) {
  // Sessions report their counts after a second of rest.
  await new Promise((resolve) => timer(1_500).subscribe(resolve));
  const { rows } = await admin.query(`select
      xact_commit::float8 as transactions, (tup_inserted + tup_updated + tup_deleted)::float8 as rows,
      pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 as wal,
      (select coalesce(sum(pg_total_relation_size(oid)), 0)::float8 from pg_class
        where relkind = 'r' and relnamespace::regnamespace::text like 'measured%') as disk,
    pg_backend_pid() as backend
    from pg_stat_database where datname = current_database()`);
  return { ...rows[0], serverCpuMs: serverCpuMs(rows[0].backend) };
}

/** The CPU time of the processes of the server of a connection, on Linux. */
function serverCpuMs(backend) {
  if (process.platform !== 'linux') return Number.NaN;
  const fieldsOf = (pid) => {
    try {
      return /\) (.*)/
        .exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))[1]
        .split(' ')
        .map(Number);
    } catch {
      return [];
    }
  };
  const server = fieldsOf(backend)[1];
  const ticksIn = (fields, places) => places.reduce((sum, place) => sum + (fields[place] ?? 0), 0);
  const running = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(fieldsOf)
    .filter((fields) => fields[1] === server)
    .reduce((sum, fields) => sum + ticksIn(fields, [11, 12]), 0);
  // Beside its own, the server knows the time of the processes that have ended.
  return (running + ticksIn(fieldsOf(server), [11, 12, 13, 14])) * 10;
}

function table(rows) {
  const names = Object.keys(rows[0]);
  const line = (cells) => `| ${cells.join(' | ')} |`;
  return [
    line(names),
    line(names.map(() => '---')),
    ...rows.map((row) => line(names.map((name) => String(row[name])))),
  ].join('\n');
}
