// What each part of the gateway costs per request when nothing happens, and what a cache saves on a scripted workload:
// `node packages/gateway/measure/overhead.mjs [--requests 4000] [--rounds 7] [--deltas 20]`.
import console from 'node:console';
import { performance } from 'node:perf_hooks';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { createAgent } from 'millrace';
import { from, lastValueFrom, timer } from 'rxjs';
import { concatMap } from 'rxjs/operators';
import { cacheResponses, canary, circuitBreaker, routeModels } from '@millrace/gateway';

const { values } = parseArgs({
  options: {
    requests: { type: 'string', default: '4000' },
    rounds: { type: 'string', default: '7' },
    /** Deltas of an answer. */
    deltas: { type: 'string', default: '20' },
  },
});
const requests = Number(values.requests);
const rounds = Number(values.rounds);

const answer = [
  ...Array.from({ length: Number(values.deltas) }, () => ({ type: 'text', text: 'word ' })),
  { type: 'usage', usage: { inputTokens: 100, outputTokens: 20 } },
  { type: 'finish', finish: 'stop' },
];
const model = (name = 'bare') => ({ name, keepsTime: true, stream$: () => from(answer) });
const user = { metadata: { userId: 'ada' } };
const closed = circuitBreaker();

const subjects = {
  'bare model': { model: model() },
  circuitBreaker: { model: closed(model()) },
  'cacheResponses, not cacheable': { model: model(), use: [cacheResponses({ when: () => false })] },
  'cacheResponses, miss': { model: model(), use: [cacheResponses()], isNew: true },
  'cacheResponses, hit': { model: model(), use: [cacheResponses()] },
  routeModels: { model: model(), use: [routeModels({ models: { a: model('a') }, by: () => 'a' })] },
  'canary, stable': { model: model(), use: [canary({ model: model('b'), share: 0 })] },
  'canary, candidate': { model: model(), use: [canary({ model: model('b'), share: 1 })] },
};

const microseconds = async ({ isNew = false, ...options }) => {
  const agent = createAgent(options);
  await agent.call('warm up', user);
  const start = process.cpuUsage();
  for (let n = 0; n < requests; n += 1) {
    await agent.call(isNew ? `question ${n}` : 'question', user);
  }
  const { user: own, system } = process.cpuUsage(start);
  return (own + system) / requests;
};

/** Rounds are interleaved, so that a busy machine slows all alike; the least of them counts. */
const times = Object.fromEntries(Object.keys(subjects).map((name) => [name, []]));
for (let round = 0; round <= rounds; round += 1) {
  for (const [name, subject] of Object.entries(subjects)) {
    const time = await microseconds(subject);
    if (round > 0) times[name].push(time);
  }
}
const least = (name) => Math.min(...times[name]);
console.log(
  `| ${requests} calls of one request, ${values.deltas} deltas | µs of CPU per call | ratio |`,
);
console.log('| --- | --- | --- |');
for (const name of Object.keys(times)) {
  const ratio = least(name) / least('bare model');
  console.log(`| ${name} | ${least(name).toFixed(0)} | ${ratio.toFixed(2)} |`);
}

/** 1,000 questions of 20 users, of which few are frequent (Zipf), in bursts of 10, to a model that takes 50 ms. */
const workload = async (use) => {
  let sent = 0;
  const slow = {
    name: 'slow',
    keepsTime: true,
    stream$: (_request, { scheduler }) => {
      sent += 1;
      return timer(50, scheduler).pipe(concatMap(() => from(answer)));
    },
  };
  const agent = createAgent({ model: slow, use });
  let state = 1;
  const random = () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
  const latencies = [];
  const ask = async () => {
    const question = Math.floor(50 ** random());
    const begun = performance.now();
    const options = { metadata: { userId: `user ${Math.floor(20 * random())}` } };
    await lastValueFrom(agent.call$(`question ${question}`, options));
    latencies.push(performance.now() - begun);
  };
  for (let burst = 0; burst < 100; burst += 1) {
    await Promise.all(Array.from({ length: 10 }, ask));
  }
  const sorted = latencies.sort((a, b) => a - b);
  return { sent, p50: sorted[500], p95: sorted[950] };
};

console.log('\n| 1,000 questions, model of 50 ms | requests sent | p50 ms | p95 ms |');
console.log('| --- | --- | --- | --- |');
const row = (name, { sent, p50, p95 }) =>
  console.log(`| ${name} | ${sent} | ${p50.toFixed(1)} | ${p95.toFixed(1)} |`);
row('no cache', await workload([]));
row('per user (default)', await workload([cacheResponses()]));
row('one scope for all', await workload([cacheResponses({ scope: () => 'everyone' })]));
