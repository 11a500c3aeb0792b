// What to run for a number of concurrent calls, from costs that `fleet.mjs` has measured:
// `node packages/dbos/measure/scale.mjs --worker-ms 6 --server-ms 6 --transactions 20 --wal 14000 --disk 7000 [--calls 10,1000,100000] [--load 0.6]`.
import console from 'node:console';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    calls: { type: 'string', default: '10,1000,100000' },
    /** Of one running call, per second: CPU of workers and of the server in milliseconds, transactions, bytes. */
    'worker-ms': { type: 'string' },
    'server-ms': { type: 'string' },
    transactions: { type: 'string' },
    wal: { type: 'string' },
    disk: { type: 'string' },
    /** The share of a core that is planned to be used. */
    load: { type: 'string', default: '0.6' },
    /** Cores of one server of Postgres. */
    cores: { type: 'string', default: '32' },
    /** Connections of a worker: two pools, half used, and two that listen. */
    connections: { type: 'string', default: '12' },
  },
});
const cost = (name) => {
  const value = Number(values[name]);
  if (Number.isFinite(value) && value > 0) return value;
  throw new Error(`--${name} needs a number: a column of fleet.mjs, per second of a running call.`);
};

const cores = (calls, ms) => (calls * ms) / 1_000 / cost('load');
const rows = values.calls
  .split(',')
  .map(Number)
  .map((calls) => {
    const workers = Math.max(2, Math.ceil(cores(calls, cost('worker-ms'))));
    const server = cores(calls, cost('server-ms'));
    const databases = Math.max(1, Math.ceil(server / cost('cores')));
    return {
      calls,
      'worker processes, one core each': workers,
      'Postgres cores': server < 1 ? server.toFixed(2) : Math.ceil(server),
      databases,
      'transactions/s': Math.round(calls * cost('transactions')),
      'WAL MB/s': ((calls * cost('wal')) / 1e6).toFixed(1),
      'disk GB/day': Math.round((calls * cost('disk') * 86_400) / 1e9),
      'connections/database': Math.ceil((workers * cost('connections')) / databases),
    };
  });
const names = Object.keys(rows[0]);
const line = (cells) => `| ${cells.join(' | ')} |`;
console.log(line(names));
console.log(line(names.map(() => '---')));
for (const row of rows) console.log(line(names.map((name) => row[name])));
