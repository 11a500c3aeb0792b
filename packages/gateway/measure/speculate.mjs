// Measures what starting tools early gains and costs, in virtual time: `node packages/gateway/measure/speculate.mjs [--turns 300]`.
// Each message calls tools with arguments of 30 tokens each, and some text may follow; 50 tokens a second. The first tool
// takes `tool ms`, the others 50 ms.
import console from 'node:console';
import { parseArgs } from 'node:util';
import { createAgent, tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { speculate } from '@millrace/gateway';
import { concatMap, delay, from, lastValueFrom, map, of, timer, VirtualTimeScheduler } from 'rxjs';

const { values } = parseArgs({ options: { turns: { type: 'string', default: '300' } } });
const turns = Number(values.turns);
const tokenMs = 20;

const words = (text) => text.match(/.{1,4}/gs) ?? [];

/** One message: `calls` tool calls, then `after` tokens of text. */
const message = (turn, calls, after) => [
  ...Array.from({ length: calls }, (_, index) => {
    const json = JSON.stringify({ query: `${turn}/${index} ${'a long question '.repeat(6)}` });
    return words(json).map((part, nth) => ({
      type: 'toolCall',
      index,
      id: `${turn}-${index}`,
      ...(nth === 0 && { name: 'search' }),
      json: part,
    }));
  }).flat(),
  ...Array.from({ length: after }, () => ({ type: 'text', text: 'word ' })),
];

/** Every nth message is discarded by its provider, and sent again. */
const measured = (toolMs, calls, after, discarded, parallel, use) => {
  const scheduler = new VirtualTimeScheduler();
  const count = { runs: 0, messages: 0, cancelled: 0 };
  const model = {
    name: 'slow',
    stream$: () => {
      count.messages += 1;
      const chunks = message(count.messages, calls, after);
      const isLast = count.messages > turns;
      const isDiscarded = discarded > 0 && count.messages % Math.round(1 / discarded) === 0;
      const script = isLast
        ? [{ type: 'text', text: 'Done.' }]
        : [...(isDiscarded ? [...chunks, { type: 'restart', why: 'again' }] : []), ...chunks];
      return from([...script, { type: 'finish', finish: 'stop' }]).pipe(
        concatMap((chunk) => of(chunk).pipe(delay(tokenMs, scheduler))),
      );
    },
  };
  const search = tool({
    name: 'search',
    description: 'Searches.',
    input: jsonSchema({
      type: 'object',
      properties: { query: { type: 'string' } },
      required: ['query'],
    }),
    run: ({ query }) => {
      count.runs += 1;
      return timer(query.includes('/0 ') ? toolMs : 50, scheduler).pipe(map(() => 'found'));
    },
  });
  const agent = createAgent({ model, tools: [search], use });
  agent.events$.subscribe(({ type, status }) => {
    if (type === 'speculation' && status === 'cancelled') count.cancelled += 1;
  });
  const limits = { maxIterations: turns + 1, maxToolCalls: 1e9, parallel };
  const done = lastValueFrom(agent.call$('?', { scheduler, limits }));
  scheduler.flush();
  return done.then(() => ({ ms: scheduler.now(), ...count }));
};

const rows = [];
for (const [calls, after, discarded, parallel] of [
  [1, 0, 0, 8],
  [1, 20, 0, 8],
  [3, 0, 0, 8],
  [3, 0, 0, 1],
  [3, 0, 0.1, 8],
]) {
  for (const toolMs of [50, 200, 500]) {
    const given = [toolMs, calls, after, discarded, parallel];
    const plain = await measured(...given, []);
    const ahead = await measured(...given, [speculate({ tools: ['search'] })]);
    rows.push({
      'tool calls': calls,
      'text after (tokens)': after,
      'discarded %': discarded * 100,
      'at a time': parallel,
      'tool ms': toolMs,
      'turn ms': Math.round(plain.ms / turns),
      'early ms': Math.round(ahead.ms / turns),
      'saved ms per turn': Math.round((plain.ms - ahead.ms) / turns),
      'wasted runs %': Number(((100 * ahead.cancelled) / plain.runs).toFixed(1)),
    });
  }
}
console.table(rows);
