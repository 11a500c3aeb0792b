// Measures what the layers cost while nothing happens: `node packages/gateway/measure/idle.mjs [--calls 300]`.
// Subscriptions of a second call, as scripts/house/ceilings.json counts them, and the time of a call with one tool.
import console from 'node:console';
import { performance } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { createAgent, tool } from 'millrace';
import { finish, text, toolCall } from 'millrace/testing';
import { hedge, liveInstructions, liveModel, liveTools, speculate } from '@millrace/gateway';
import { BehaviorSubject, from, lastValueFrom, Observable } from 'rxjs';

const { values } = parseArgs({ options: { calls: { type: 'string', default: '300' } } });
const calls = Number(values.calls);

const lookup = tool({ name: 'lookup', description: 'Looks up.', run: () => 'found' });
const other = tool({ name: 'other', description: 'Other.', run: () => 'found' });
/** A call with so many turns with a tool; its answer has so many deltas. */
const modelOf = (turns, deltas) => ({
  name: 'scripted',
  stream$: ({ messages }) => {
    const done = messages.filter(({ role }) => role === 'tool').length;
    const answer = Array.from({ length: deltas }, () => text('Yes. '));
    return from([...(done < turns ? [toolCall('lookup', {}, `c${done}`)] : answer), finish()]);
  },
});

const flag = new BehaviorSubject('Be brief.');
const tools$ = new BehaviorSubject([other]);
const set = {
  'no layer': () => ({}),
  'hedge()': (model) => ({ model: hedge(model, model, { afterMs: 1_000 }) }),
  'liveInstructions()': () => ({ use: [liveInstructions(flag)] }),
  "liveInstructions(), at: 'turn'": () => ({ use: [liveInstructions(flag, { at: 'turn' })] }),
  'liveTools()': () => ({ use: [liveTools(tools$)] }),
  "liveTools(), at: 'turn'": () => ({ use: [liveTools(tools$, { at: 'turn' })] }),
  'liveModel()': (model) => ({ use: [liveModel(new BehaviorSubject(model))] }),
  'speculate(), another tool': () => ({ use: [speculate({ tools: ['other'] })] }),
  'speculate()': () => ({ use: [speculate({ tools: ['lookup'] })] }),
};

const agentOf = (change, turns, deltas) => {
  const model = modelOf(turns, deltas);
  return createAgent({ model, tools: [lookup], ...change(model) });
};

const { subscribe } = Observable.prototype;
const subscriptions = async (change, turns, deltas) => {
  const agent = agentOf(change, turns, deltas);
  await lastValueFrom(agent.call$('?'));
  let count = 0;
  Observable.prototype.subscribe = function counted(...observer) {
    count += 1;
    return subscribe.apply(this, observer);
  };
  try {
    await lastValueFrom(agent.call$('?'));
  } finally {
    Observable.prototype.subscribe = subscribe;
  }
  return count;
};

const agents = Object.entries(set).map(([name, change]) => [name, agentOf(change, 1, 200)]);
const times = new Map(agents.map(([name]) => [name, []]));
// In turns, so that the machine is equally busy for all.
for (let nth = 0; nth < calls; nth += 1) {
  for (const [name, agent] of agents) {
    const since = performance.now();
    await lastValueFrom(agent.call$('?'));
    times.get(name).push(performance.now() - since);
  }
}
const median = (list) => list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)];

const rows = [];
const plain = await subscriptions(set['no layer'], 0, 1);
for (const [name, change] of Object.entries(set)) {
  const question = await subscriptions(change, 0, 1);
  const one = await subscriptions(change, 1, 1);
  const two = await subscriptions(change, 2, 1);
  const many = await subscriptions(change, 0, 101);
  rows.push({
    layer: name,
    'added per question': question - plain,
    'turn with a tool': two - one,
    'per delta': (many - question) / 100,
    'ms per call': Number(median(times.get(name)).toFixed(2)),
    ratio: Number((median(times.get(name)) / median(times.get('no layer'))).toFixed(2)),
  });
}
console.log('Subscriptions, and the time of a call with a tool and an answer of 200 deltas');
console.table(rows);
