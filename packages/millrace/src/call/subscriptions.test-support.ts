import { lastValueFrom, Observable } from 'rxjs';
import { createAgent, type ModelChunk, tool } from '../index.js';
import { createCallStore, inProcessCalls, journal } from '../journal/index.js';
import { jsonSchema } from '../schema/index.js';
import { scriptedModel, text, toolCall } from '../testing/index.js';

/** A call to measure. Its last turn is the answer. */
export interface MeasuredCall {
  /** Turns before the answer, each with tool calls. Default: 0. */
  readonly turns?: number;
  /** Tool calls in each of these turns. Default: 1. */
  readonly toolCalls?: number;
  /** Whether the tools are async functions that take the signal. Default: false. */
  readonly async?: boolean;
  /** Deltas that the answer consists of. Default: 1. */
  readonly deltas?: number;
  /** Whether a journal in this process records the call. Default: false. */
  readonly journaled?: boolean;
}

/** The only place that gives a measured agent its journal. */
const withJournal = () => ({ use: [journal(createCallStore(inProcessCalls()))] });

const found = 'A stream that turns a mill.';

const lookup = (isAsync: boolean) =>
  tool({
    name: 'lookup',
    description: 'Looks up a word',
    input: jsonSchema({
      type: 'object',
      properties: { word: { type: 'string' } },
      required: ['word'],
    }),
    run: (_input, { signal }) => (isAsync ? Promise.resolve(signal.aborted ? '' : found) : found),
  });

const scriptOf = ({ turns = 0, toolCalls = 1, deltas = 1 }: MeasuredCall): ModelChunk[][] => [
  ...Array.from({ length: turns }, (_, turn) =>
    Array.from({ length: toolCalls }, (_call, index) =>
      toolCall('lookup', { word: 'millrace' }, `${turn}-${index}`),
    ),
  ),
  Array.from({ length: deltas }, () => text('Yes. ')),
];

/** Makes the call once to warm up, and returns a function that makes it a second time. */
export const secondCall = async (call: MeasuredCall): Promise<() => Promise<unknown>> => {
  const script = scriptOf(call);
  const agent = createAgent({
    model: scriptedModel(...script, ...script),
    tools: [lookup(call.async === true)],
    ...(call.journaled === true ? withJournal() : {}),
  });
  const run = () => lastValueFrom(agent.call$('What is a millrace?'));
  await run();
  return run;
};

/** Where every subscription passes. */
const observables: { subscribe: (...observer: never[]) => unknown } = Observable.prototype;

/** How often the second call subscribes to an Observable. */
export const subscriptionsOf = async (call: MeasuredCall): Promise<number> => {
  const run = await secondCall(call);
  const { subscribe } = observables;
  let count = 0;
  observables.subscribe = new Proxy(subscribe, {
    apply: (target, observable, observer): unknown => {
      count += 1;
      return Reflect.apply(target, observable, observer);
    },
  });
  try {
    await run();
  } finally {
    observables.subscribe = subscribe;
  }
  return count;
};

/** The subscriptions that each part of a call costs. The ceilings are in scripts/house/ceilings.json. */
export const subscriptionCosts = async () => {
  const growth = async (smaller: MeasuredCall, larger: MeasuredCall): Promise<number> =>
    (await subscriptionsOf(larger)) - (await subscriptionsOf(smaller));
  return {
    question: await subscriptionsOf({}),
    'turn with a tool': await growth({ turns: 1 }, { turns: 2 }),
    // A single tool call needs nothing that runs several at once.
    'further tool call': await growth({ turns: 1, toolCalls: 2 }, { turns: 1, toolCalls: 3 }),
    'turn with an async tool': await growth({ turns: 1, async: true }, { turns: 2, async: true }),
    'further async tool call': await growth(
      { turns: 1, toolCalls: 2, async: true },
      { turns: 1, toolCalls: 3, async: true },
    ),
    delta: (await growth({}, { deltas: 101 })) / 100,
    journal: await growth({ turns: 1 }, { turns: 1, journaled: true }),
    'delta with a journal':
      (await growth({ journaled: true }, { journaled: true, deltas: 101 })) / 100,
  };
};
