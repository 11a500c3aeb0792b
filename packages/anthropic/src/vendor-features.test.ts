import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  type AgentEvent,
  type AssistantMessage,
  createAgent,
  type Reply,
  textOf,
  tool,
} from 'millrace';
import { sessions } from 'millrace/sessions';
import {
  type FaultServer,
  messagesBlock,
  messagesEvent,
  messagesStream,
  messageStart,
  type ResponseScript,
  startFaultServer,
  streamed,
} from '@millrace/fault-server';
import { anthropic, type AnthropicOptions } from './index.js';

type Json = Readonly<Record<string, unknown>>;
type Block = readonly [start: Json, ...deltas: readonly Json[]];

let server: FaultServer;
beforeAll(async () => {
  server = await startFaultServer();
});
afterAll(() => server.close());

const answer = (
  blocks: readonly Block[],
  {
    stop = 'end_turn',
    delta = {},
    usage = { output_tokens: 7 },
  }: { stop?: string; delta?: Json; usage?: Json } = {},
): ResponseScript =>
  streamed([
    messageStart({ input_tokens: 10, output_tokens: 1 }),
    ...blocks.flatMap(([start, ...deltas], index) => messagesBlock(index, start, deltas)),
    messagesEvent({ type: 'message_delta', delta: { stop_reason: stop, ...delta }, usage }),
    messagesEvent({ type: 'message_stop' }),
  ]);
const text = (words: string, ...deltas: readonly Json[]): Block => [
  { type: 'text', text: '' },
  { type: 'text_delta', text: words },
  ...deltas,
];
const ok = streamed(messagesStream({ text: 'ok' }));

interface Talk {
  readonly replies: readonly Reply[];
  readonly bodies: readonly Json[];
  readonly events: readonly AgentEvent[];
}

const weather = tool({
  name: 'weather',
  description: 'Tells the weather.',
  run: () => 'Snow',
  vendorOptions: {
    Anthropic: { allowed_callers: ['code_execution_20260120'], input_examples: [{}] },
    OpenAI: { strict: false },
  },
});

/** Asks once for each answer that a question gets, in one session. */
const talk = async (
  answers: readonly ResponseScript[],
  options: AnthropicOptions = {},
  questions: readonly string[] = ['Weather?', 'More?'],
): Promise<Talk> => {
  const played = await server.play({ responses: answers });
  const model = anthropic('claude-sonnet-4-5', {
    apiKey: 'sk-ant-0123456789abcdef',
    baseURL: played.url,
    retry: false,
    ...options,
  });
  const agent = createAgent({ model, tools: [weather] });
  const events: AgentEvent[] = [];
  const listening = agent.events$.subscribe((event) => events.push(event));
  const session = sessions(agent).open('s');
  const replies: Reply[] = [];
  for (const question of questions) replies.push(await session.call(question));
  listening.unsubscribe();
  const bodies = (await played.settled()).map(({ body }) => body as Json);
  return { replies, bodies, events };
};

const sentBack = ({ bodies }: Talk): unknown => {
  const { messages } = bodies[1] as { readonly messages: readonly Json[] };
  return messages[1]?.['content'];
};

describe('what Anthropic adds to answers', () => {
  it.each<[string, Json, Json]>([
    [
      'a page',
      {
        type: 'web_search_result_location',
        url: 'https://a.b/c',
        title: 'Snow',
        cited_text: 'x',
        encrypted_index: 'EI',
      },
      { url: 'https://a.b/c', title: 'Snow', citedText: 'x' },
    ],
    [
      'pages of a PDF',
      {
        type: 'page_location',
        document_index: 0,
        document_title: 'P',
        cited_text: 'x',
        start_page_number: 2,
        end_page_number: 3,
      },
      { title: 'P', documentIndex: 0, location: { unit: 'page', start: 2, end: 3 } },
    ],
    [
      'characters of a text',
      {
        type: 'char_location',
        document_index: 1,
        document_title: null,
        cited_text: 'x',
        start_char_index: 4,
        end_char_index: 9,
      },
      { documentIndex: 1, location: { unit: 'character', start: 4, end: 9 } },
    ],
    [
      'blocks of a document',
      {
        type: 'content_block_location',
        document_index: 0,
        document_title: null,
        cited_text: 'x',
        start_block_index: 0,
        end_block_index: 1,
      },
      { location: { unit: 'block', start: 0, end: 1 } },
    ],
    [
      'a search result of a tool',
      {
        type: 'search_result_location',
        source: 'https://a.b/c',
        title: 'T',
        cited_text: 'x',
        search_result_index: 0,
        start_block_index: 0,
        end_block_index: 1,
      },
      { url: 'https://a.b/c', title: 'T', location: { unit: 'block', start: 0, end: 1 } },
    ],
    ['a source of a type that is not known yet', { type: 'tomorrow', mark: 'M' }, {}],
  ])(
    'citations of %s are in the reply, in an event and in the next request',
    async (_, citation, ours) => {
      const played = await talk([
        answer([text('It snows.', { type: 'citations_delta', citation }), text(' And so on.')]),
        ok,
      ]);
      const [reply] = played.replies;
      const vendorData = { vendor: 'Anthropic', data: citation };
      expect(reply?.content).toMatchObject([
        { text: 'It snows.', citations: [{ ...ours, vendorData }] },
        { text: ' And so on.' },
      ]);
      expect(reply?.text).toBe('It snows. And so on.');
      expect(sentBack(played)).toMatchObject([
        { text: 'It snows.', citations: [citation] },
        { text: ' And so on.' },
      ]);
      const shown = played.events.flatMap((event) =>
        event.type === 'reasoningChunk' ? (event.citation ?? []) : [],
      );
      expect(shown).toMatchObject([ours]);
    },
  );

  it('X30: blocks of unknown types are in the reply, in an event and in the next request', async () => {
    const start = { type: 'tomorrow', id: 'new_1', notes: 'a', input: {} };
    const played = await talk([
      answer([
        [
          start,
          { type: 'tomorrow_delta', notes: 'b' },
          { type: 'input_json_delta', partial_json: '{"a":1}' },
        ],
      ]),
      ok,
    ]);
    const data = { ...start, notes: 'ab', input: { a: 1 } };
    const block = { type: 'vendor', vendor: 'Anthropic', kind: 'tomorrow', data };
    expect(played.replies[0]).toMatchObject({ reason: 'answer', content: [block] });
    expect(played.bodies).toHaveLength(2);
    expect(sentBack(played)).toEqual([data]);
    expect(played.events).toContainEqual(
      expect.objectContaining({ type: 'reasoningChunk', kind: 'block', block }),
    );
  });

  it('facts are in `reply.vendor`', async () => {
    const { replies } = await talk(
      [
        answer([text('x')], {
          stop: 'refusal',
          delta: {
            stop_details: { type: 'refusal', category: 'cyber', explanation: 'No.' },
            container: { id: 'c_1', expires_at: '2030-01-01T00:00:00Z' },
          },
          usage: {
            output_tokens: 9,
            output_tokens_details: { thinking_tokens: 5 },
            server_tool_use: { web_search_requests: 2, web_fetch_requests: 0 },
            cache_creation: { ephemeral_5m_input_tokens: 3, ephemeral_1h_input_tokens: 0 },
          },
        }),
      ],
      {},
      ['Weather?'],
    );
    expect(replies[0]?.vendor).toEqual({
      name: 'Anthropic',
      id: 'msg_01FaultServer',
      model: 'claude-sonnet-4-5-20250929',
      container: { id: 'c_1', expiresAt: '2030-01-01T00:00:00Z' },
      reasoningTokens: 5,
      cacheWrites: { '5m': 3 },
      toolUses: { web_search: 2 },
      stopReason: 'refusal',
      refusal: { category: 'cyber', explanation: 'No.' },
      stopDetails: { type: 'refusal', category: 'cyber', explanation: 'No.' },
    });
  });

  it('texts before and after a tool of the vendor are separate messages', async () => {
    const found = { type: 'web_search_tool_result', tool_use_id: 's', content: [] };
    const search: Block = [{ type: 'server_tool_use', id: 's', name: 'web_search', input: {} }];
    const { replies } = await talk(
      [
        answer([text('Let me check.'), search, [found]], { stop: 'pause_turn' }),
        answer([text('It snows.'), text(' A lot.')]),
      ],
      {},
      ['Weather?'],
    );
    expect(replies[0]?.text).toBe('Let me check.\n\nIt snows. A lot.');
  });
});

describe('code that the vendor runs', () => {
  const caller = { type: 'code_execution_20260120', tool_id: 'srv_1' };
  const code: Block = [
    { type: 'server_tool_use', id: 'srv_1', name: 'code_execution', input: {} },
    { type: 'input_json_delta', partial_json: '{"code":"weather()"}' },
  ];
  const use = (id: string): Block => [{ type: 'tool_use', id, name: 'weather', input: {}, caller }];
  const container = (id: string) => ({ container: { id, expires_at: '2020-01-01T00:00:00Z' } });
  const builtInTools = [{ type: 'code_execution_20260120', name: 'code_execution' }];

  it('calls a tool of yours over several turns, in its container', async () => {
    const { bodies, replies } = await talk(
      [
        answer([code, use('t1')], { stop: 'tool_use', delta: container('c_1') }),
        answer([use('t2')], { stop: 'tool_use' }),
        answer(
          [
            [{ type: 'code_execution_tool_result', tool_use_id: 'srv_1', content: {} }],
            text('Snow.'),
          ],
          { delta: container('c_2') },
        ),
        ok,
      ],
      { builtInTools, body: { container: { skills: [{ type: 'anthropic', skill_id: 'xlsx' }] } } },
    );
    const skills = [{ type: 'anthropic', skill_id: 'xlsx' }];
    expect(bodies.map((body) => body['container'])).toEqual([
      { skills },
      { skills, id: 'c_1' },
      { skills, id: 'c_1' },
      // The container of the last answer has expired, and no call is pending.
      { skills },
    ]);
    expect(
      JSON.stringify(bodies[2]?.['messages']).split(JSON.stringify({ caller }).slice(1, -1)),
    ).toHaveLength(3);
    expect(replies[0]?.text).toBe('Snow.');
    expect(bodies[0]?.['tools']).toMatchObject([
      {},
      { allowed_callers: [caller.type], input_examples: [{}] },
    ]);
    expect(JSON.stringify(bodies[0])).not.toContain('strict');
  });

  it('keeps a container of yours', async () => {
    const { bodies } = await talk(
      [answer([code, use('t1')], { stop: 'tool_use', delta: container('c_1') }), ok],
      { builtInTools, body: { container: 'mine' } },
      ['Weather?'],
    );
    expect(bodies.map((body) => body['container'])).toEqual(['mine', 'mine']);
  });
});

describe('what users send', () => {
  it('files by id, and documents to cite', async () => {
    const played = await server.play({ responses: [ok] });
    const model = anthropic('claude-sonnet-4-5', {
      apiKey: 'sk-ant-0123456789abcdef',
      baseURL: played.url,
    });
    const message = {
      role: 'user' as const,
      content: [
        {
          type: 'file' as const,
          source: { kind: 'id' as const, id: 'file_1' },
          name: 'Paper',
          citations: true,
        },
        {
          type: 'image' as const,
          source: { kind: 'id' as const, id: 'file_2' },
          cache: '1h' as const,
        },
      ],
    };
    const reply = await createAgent({ model }).call(message);
    expect(textOf(reply satisfies AssistantMessage)).toBe('ok');
    const [request] = await played.settled();
    expect(request?.body).toMatchObject({
      messages: [
        {
          content: [
            {
              type: 'document',
              source: { type: 'file', file_id: 'file_1' },
              title: 'Paper',
              citations: { enabled: true },
            },
            {
              type: 'image',
              source: { type: 'file', file_id: 'file_2' },
              cache_control: { ttl: '1h' },
            },
          ],
        },
      ],
    });
  });
});
