import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { anthropic } from '@millrace/anthropic';
import { createAgent, type Model, type Reply, tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { sessions } from 'millrace/sessions';
import {
  type FaultServer,
  json,
  messageEnd,
  messagesBlock,
  messageStart,
  messagesUsage,
  responseObject,
  responsesEvents,
  type ResponseScript,
  responsesUsage,
  startFaultServer,
  streamed,
} from '@millrace/fault-server';
import { openai } from '@millrace/openai';
import { deferLoading } from '@millrace/tools';

// Real sockets may have to wait for a busy machine.
jest.setTimeout(60_000);

type Json = Readonly<Record<string, unknown>>;

let server: FaultServer;
beforeAll(async () => {
  server = await startFaultServer();
});
afterAll(() => server.close());

const city = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
} as const;

const tools = ['weather', 'tides', 'trains'].map((name) =>
  deferLoading(
    tool({
      ...{ name, description: `Tells the ${name} of a city.`, input: jsonSchema(city) },
      run: (given: { readonly city: string }) => `${name} in ${given.city}`,
    }),
  ),
);

const usage = { input: 100, cached: 0, output: 10 };
const settings = { apiKey: 'sk-ant-0123456789abcdef', retry: false } as const;

/** A vendor: its model with its own search, and answers of these blocks or items, streamed and as one JSON body. */
interface Vendor {
  readonly model: (baseURL: string) => Model;
  readonly stream: (content: readonly Json[], isCall: boolean) => ResponseScript;
  readonly body: (content: readonly Json[], isCall: boolean) => ResponseScript;
  /** What the model says when it searches and calls, and when it answers. */
  readonly searches: readonly Json[];
  readonly answers: readonly Json[];
  /** What the vendor's search is in the request, and what a deferred tool is. */
  readonly search: Json;
  readonly deferred: Json;
  /** The part of a request that the model said, and the result of the tool. */
  readonly sent: (body: Json) => readonly unknown[];
  readonly result: Json;
}

/** https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool */
const messages: Vendor = {
  model: (baseURL) =>
    anthropic('claude-sonnet-4-5', {
      ...{ ...settings, baseURL },
      builtInTools: [{ type: 'tool_search_tool_bm25_20251119', name: 'tool_search_tool_bm25' }],
    }),
  stream: (content, isCall) =>
    streamed([
      messageStart(messagesUsage(usage)),
      ...content.flatMap((block, index) => messagesBlock(index, ...partsOf(block))),
      ...messageEnd(isCall ? 'tool_use' : 'end_turn', messagesUsage(usage)),
    ]),
  body: (content, isCall) =>
    json(200, {
      ...{ id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-sonnet-4-5', content },
      ...{ stop_reason: isCall ? 'tool_use' : 'end_turn', stop_sequence: null },
      usage: messagesUsage(usage),
    }),
  searches: [
    { type: 'text', text: 'I look for a tool.' },
    {
      ...{ type: 'server_tool_use', id: 'srvtoolu_1', name: 'tool_search_tool_bm25' },
      input: { query: 'weather' },
    },
    {
      ...{ type: 'tool_search_tool_result', tool_use_id: 'srvtoolu_1' },
      content: {
        type: 'tool_search_tool_search_result',
        tool_references: [{ type: 'tool_reference', tool_name: 'weather' }],
      },
    },
    { type: 'tool_use', id: 'toolu_1', name: 'weather', input: { city: 'Oslo' } },
  ],
  answers: [{ type: 'text', text: 'Snow.' }],
  search: { type: 'tool_search_tool_bm25_20251119', name: 'tool_search_tool_bm25' },
  deferred: { name: 'weather', defer_loading: true, input_schema: city },
  sent: (body) =>
    (body['messages'] as readonly Json[])
      .slice(1, 2)
      .flatMap(({ content }) => content as readonly unknown[]),
  result: { type: 'tool_result', tool_use_id: 'toolu_1' },
};

/** A block as it starts in a stream, and its deltas. */
const partsOf = (block: Json): readonly [Json, readonly Json[]] => {
  switch (block['type']) {
    case 'text':
      return [{ ...block, text: '' }, [{ type: 'text_delta', text: block['text'] }]];
    case 'tool_use':
    case 'server_tool_use': {
      const partial_json = JSON.stringify(block['input']);
      return [{ ...block, input: {} }, [{ type: 'input_json_delta', partial_json }]];
    }
    default:
      return [block, []];
  }
};

const done = { status: 'completed' } as const;

/** https://platform.openai.com/docs/guides/tools-tool-search */
const responses: Vendor = {
  model: (baseURL) =>
    openai.responses('gpt-5-mini', {
      ...{ ...settings, baseURL },
      builtInTools: [{ type: 'tool_search' }],
    }),
  stream: (output) => {
    const events = output.flatMap((item, output_index) => [
      { type: 'response.output_item.added', output_index, item: started(item) },
      ...(item['type'] === 'function_call'
        ? [
            {
              ...{ type: 'response.function_call_arguments.delta', item_id: item['id'] },
              ...{ output_index, delta: item['arguments'] },
            },
          ]
        : []),
      { type: 'response.output_item.done', output_index, item },
    ]);
    const response = responseObject({ ...done, output, usage: responsesUsage(usage) });
    return streamed(
      responsesEvents([
        { type: 'response.created', response: responseObject({}) },
        ...events,
        { type: 'response.completed', response },
      ]),
    );
  },
  body: (output) => json(200, responseObject({ ...done, output, usage: responsesUsage(usage) })),
  searches: [
    {
      ...{ type: 'tool_search_call', id: 'tsc_1', call_id: null, execution: 'server', ...done },
      arguments: { paths: ['weather'] },
    },
    {
      ...{ type: 'tool_search_output', id: 'tso_1', call_id: null, execution: 'server', ...done },
      tools: [{ type: 'function', name: 'weather', defer_loading: true, parameters: city }],
    },
    {
      ...{ type: 'function_call', id: 'fc_1', call_id: 'call_1', ...done },
      ...{ name: 'weather', namespace: 'weather', arguments: '{"city":"Oslo"}' },
    },
  ],
  answers: [
    {
      ...{ type: 'message', id: 'msg_1', role: 'assistant', ...done },
      content: [{ type: 'output_text', text: 'Snow.', annotations: [] }],
    },
  ],
  search: { type: 'tool_search' },
  deferred: { type: 'function', name: 'weather', defer_loading: true, parameters: city },
  sent: (body) => (body['input'] as readonly Json[]).slice(1, 4),
  result: { type: 'function_call_output', call_id: 'call_1', output: 'weather in Oslo' },
};

/** An item as it is announced: the vendor may name the namespace only in the end. */
const started = ({ namespace: _later, ...item }: Json): Json =>
  item['type'] === 'function_call' ? { ...item, arguments: '', status: 'in_progress' } : item;

const played = async (
  vendor: Vendor,
  form: 'stream' | 'body',
): Promise<{ readonly replies: readonly Reply[]; readonly bodies: readonly Json[] }> => {
  const [searches, answers] = [vendor.searches, vendor.answers];
  const { url, settled } = await server.play({
    responses: [
      vendor[form](searches, true),
      vendor[form](answers, false),
      vendor[form](answers, false),
    ],
  });
  const session = sessions(createAgent({ model: vendor.model(url), tools })).open('s');
  const replies = [await session.call('Weather in Oslo?'), await session.call('Sure?')];
  const seen = await settled();
  expect(seen.flatMap(({ violations }) => violations)).toEqual([]);
  return { replies, bodies: seen.map(({ body }) => body as Json) };
};

describe.each([
  ['Anthropic', messages],
  ["OpenAI's Responses API", responses],
])('T11: the tool search of %s', (_name, vendor) => {
  it.each(['stream', 'body'] as const)(
    'loads a deferred tool, which runs here; the next requests repeat what it found (%s)',
    async (form) => {
      const { replies, bodies } = await played(vendor, form);
      expect(replies[0]).toMatchObject({
        text: expect.stringMatching(/Snow\.$/),
        toolCalls: [{ name: 'weather', input: { city: 'Oslo' }, output: 'weather in Oslo' }],
        iterations: 2,
      });
      expect(bodies).toHaveLength(3);
      for (const body of bodies) {
        const declared = body['tools'] as readonly Json[];
        expect(declared).toContainEqual(expect.objectContaining(vendor.search));
        expect(declared).toContainEqual(expect.objectContaining(vendor.deferred));
        expect(declared.filter((it) => it['defer_loading'] === true)).toHaveLength(3);
      }
      for (const body of bodies.slice(1)) {
        expect(vendor.sent(body)).toMatchObject(vendor.searches.map(repeated));
        expect(JSON.stringify(body)).toContain(JSON.stringify(vendor.result).slice(1, -1));
      }
    },
  );
});

/** What a request must repeat of an item: the ids of stored items may be left out. */
const repeated = ({ id: _id, call_id, status: _status, ...item }: Json): Json => ({
  ...item,
  ...(typeof call_id === 'string' && { call_id }),
});
