import type { ServerResponse } from 'node:http';
import { createAgent, fallback, type Model, tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { hedge, speculate } from '@millrace/gateway';
import { openai } from '@millrace/openai';
import { bodyOf, openSite, type Site } from '../driver/serving.js';
import { endOf } from '../driver/run-tool.js';
import { type Attack, scene } from '../scene.js';

const call = (index: number, id = `c${index}`) => ({
  index,
  id,
  type: 'function',
  function: { name: 'pay', arguments: JSON.stringify({ invoice: index }) },
});
const both = [call(1), call(2)];

type Write = (choice: object) => void;

/** The second time, the arguments are broken, and repaired. */
const repeated = 'both tool calls twice';

/** How a provider fails while it asks for two payments. `first` is true for its first request. */
type Fault = (write: Write, response: ServerResponse, first: boolean) => void;

const whole: Fault = (write, response) => {
  write({ delta: { tool_calls: both } });
  write({ delta: {}, finish_reason: 'tool_calls' });
  response.end('data: [DONE]\n\n');
};

const firstTime =
  (fault: (write: Write, response: ServerResponse) => void): Fault =>
  (write, response, first) =>
    first ? fault(write, response) : whole(write, response, first);

const faults: Readonly<Record<string, Fault>> = {
  'no fault': whole,
  'a cut after the first tool call': firstTime((write, response) => {
    write({ delta: { tool_calls: [both[0]] } });
    response.destroy();
  }),
  'an error after both tool calls': firstTime((write, response) => {
    write({ delta: { tool_calls: both } });
    response.end('data: {"error":{"message":"overloaded","type":"server_error"}}\n\n');
  }),
  'an end without a finish': firstTime((write, response) => {
    write({ delta: { tool_calls: both } });
    response.end();
  }),
  'two finishes': (write, response) => {
    write({ delta: { tool_calls: both } });
    write({ delta: {}, finish_reason: 'tool_calls' });
    write({ delta: {}, finish_reason: 'tool_calls' });
    response.end('data: [DONE]\n\ndata: [DONE]\n\n');
  },
  'one id for both tool calls': (write, response) => {
    write({ delta: { tool_calls: [call(1), call(2, 'c1')] } });
    write({ delta: {}, finish_reason: 'tool_calls' });
    response.end('data: [DONE]\n\n');
  },
  [repeated]: (write, response) => {
    write({ delta: { tool_calls: both } });
    whole(write, response, false);
  },
};

/** The message after the results breaks off, and is asked for again. */
const cutAfterResults = 'a cut after the results';

interface World {
  readonly site: Site;
  fault: Fault;
  cutsAnswer: boolean;
  requests: number;
}

const open = async (): Promise<World> => {
  const world = { fault: whole, cutsAnswer: false, requests: 0 };
  const site = await openSite((request, response) => {
    void bodyOf(request).then((body) => {
      world.requests += 1;
      const first = world.requests === 1;
      const write: Write = (choice) =>
        void response.write(
          `data: ${JSON.stringify({ id: 'x', choices: [{ index: 0, ...choice }] })}\n\n`,
        );
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      if (!body.includes('"role":"tool"')) world.fault(write, response, first);
      else if (world.cutsAnswer) {
        world.cutsAnswer = false;
        write({ delta: { content: 'Do' } });
        response.destroy();
      } else {
        write({ delta: { content: 'Done.' } });
        write({ delta: {}, finish_reason: 'stop' });
        response.end('data: [DONE]\n\n');
      }
    });
  });
  return Object.assign(world, { site });
};

/** Makes a model of one that talks to the provider. */
type Wrap = (create: (options?: { readonly retry: false }) => Model) => Model;

const models: Readonly<Record<string, Wrap>> = {
  'a model that retries': (create) => create(),
  'a fallback': (create) => fallback(create({ retry: false }), create({ retry: false })),
  'a hedge': (create) => hedge(create(), create(), { afterMs: 0 }),
};

const playing =
  (wrap: Wrap, fault: string, isEarly: boolean): Attack<World> =>
  async (world) => {
    Object.assign(world, {
      fault: faults[fault] ?? whole,
      cutsAnswer: fault === cutAfterResults,
      requests: 0,
    });
    const paid: number[] = [];
    const pay = tool({
      name: 'pay',
      description: 'Pays an invoice.',
      input: jsonSchema({
        type: 'object',
        properties: { invoice: { type: 'number' } },
        required: ['invoice'],
      }),
      run: ({ invoice }) => {
        paid.push(invoice);
        return 'Paid.';
      },
    });
    const baseURL = `${world.site.origin}/v1`;
    const model = wrap((options) =>
      openai.chat('gpt-5-mini', { apiKey: 'none', baseURL, ...options }),
    );
    const use = isEarly ? [speculate({ tools: ['pay'] })] : [];
    const end = await endOf(createAgent({ model, tools: [pay], use }));
    if (paid.length !== new Set(paid).size) return `paid ${paid.join()} (${end})`;
    return end.startsWith('untyped') ? end : undefined;
  };

export const doubleExecutionScenes = [
  scene<World>({
    rule: 'X7',
    promise: 'A payment that a model asks for once is made once, whatever the provider does',
    open,
    close: ({ site }) => site.close(),
    attacks: Object.fromEntries(
      Object.entries(models).flatMap(([name, wrap]) =>
        [...Object.keys(faults), cutAfterResults].flatMap((fault) =>
          // A tool that starts early must have no side effects: a call that is repaired runs it again.
          (fault === repeated ? [false] : [false, true]).map((isEarly) => [
            `${name}${isEarly ? ', tools start early' : ''}: ${fault}`,
            playing(wrap, fault, isEarly),
          ]),
        ),
      ),
    ),
  }),
];
