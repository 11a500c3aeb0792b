// Measures what hedging gains and costs against slow models, in virtual time:
// `node packages/gateway/measure/hedge.mjs [--requests 20000] [--p50 400] [--p99 4000]`.
// The time to the first chunk is log-normal, independently for both models. A loser is aborted: it costs its input only.
import console from 'node:console';
import { parseArgs } from 'node:util';
import { openDemand } from 'millrace';
import { hedge } from '@millrace/gateway';
import { concat, map, of, take, timer, VirtualTimeScheduler } from 'rxjs';

const { values } = parseArgs({
  options: {
    requests: { type: 'string', default: '20000' },
    p50: { type: 'string', default: '400' },
    p99: { type: 'string', default: '4000' },
  },
});
const [requests, p50, p99] = [values.requests, values.p50, values.p99].map(Number);

/** The same numbers in every run. */
const randomFrom = (seed) => () => {
  seed = (seed + 0x6d2b79f5) | 0;
  let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed);
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
};

const sigma = Math.log(p99 / p50) / 2.326;
const latencyFrom = (random) => () => {
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  return Math.round(p50 * Math.exp(sigma * normal));
};

const measured = (afterMs) => {
  const scheduler = new VirtualTimeScheduler();
  const count = { asked: 0, second: 0 };
  const latencies = [latencyFrom(randomFrom(1)), latencyFrom(randomFrom(2))];
  const models = latencies.map((latency, nth) => ({
    name: `model ${nth + 1}`,
    stream$: () => {
      if (nth === 1) count.second += 1;
      const chunk = { type: 'text', text: 'x' };
      return concat(
        timer(latency(), scheduler).pipe(map(() => chunk)),
        of({ type: 'finish', finish: 'stop' }),
      );
    },
  }));
  const model = afterMs === undefined ? models[0] : hedge(...models, { afterMs });
  const context = {
    demand: openDemand,
    scheduler,
    report: () => undefined,
    stepId: 'm/1',
    random: Math.random,
  };
  const firsts = [];
  for (let nth = 0; nth < requests; nth += 1) {
    const since = scheduler.now();
    model
      .stream$({ messages: [] }, context)
      .pipe(take(1))
      .subscribe(() => firsts.push(scheduler.now() - since));
    scheduler.flush();
  }
  firsts.sort((a, b) => a - b);
  const at = (share) => firsts[Math.min(firsts.length - 1, Math.floor(share * firsts.length))];
  return {
    afterMs: afterMs ?? 'none',
    p50: at(0.5),
    p95: at(0.95),
    p99: at(0.99),
    'p99.9': at(0.999),
    'extra requests %': Number(((100 * count.second) / requests).toFixed(1)),
  };
};

console.log(
  `Time to the first chunk in ms; ${requests} requests, log-normal, p50 ${p50}, p99 ${p99}`,
);
console.table([undefined, 4000, 2000, 1500, 1000, 800, 600, 400, 200, 0].map(measured));
