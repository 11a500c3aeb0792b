import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type AssistantBlock, createAgent, type Message, tool } from 'millrace';
import { sessions } from 'millrace/sessions';
import {
  bytes,
  checkMessagesRequest,
  type FaultServer,
  messagesBlock,
  messageEnd,
  messagesStream,
  messageStart,
  type ResponseScript,
  stall,
  startFaultServer,
  streamed,
  streamHeaders,
} from '@millrace/fault-server';
import { listAt, toWireId } from '@millrace/wire';
import fc from 'fast-check';
import { filter, take } from 'rxjs';
import { anthropic } from './index.js';
import { messagesRequest } from './messages-request.js';
import { createServerToolPairs } from './server-tools.js';

type Json = Readonly<Record<string, unknown>>;

let server: FaultServer;
beforeAll(async () => {
  server = await startFaultServer();
});
afterAll(() => server.close());

const search: Json = {
  type: 'server_tool_use',
  id: 's1',
  name: 'web_search',
  input: { q: 'Oslo' },
};
const found: Json = { type: 'web_search_tool_result', tool_use_id: 's1', content: [] };
const weather: Json = { type: 'tool_use', id: 't1', name: 'weather', input: {} };
const result = {
  type: 'tool_result',
  tool_use_id: 't1',
  content: [{ type: 'text', text: 'Snow' }],
};
const text = (words: string): Json => ({ type: 'text', text: words });

const contents = (...blocks: readonly Json[]): readonly string[] => [
  messageStart(null),
  ...blocks.flatMap((block, index) => messagesBlock(index, block, [])),
];
const answer = (stop: string, ...blocks: readonly Json[]): ResponseScript =>
  streamed([...contents(...blocks), ...messageEnd(stop, null)]);
const ok = streamed(messagesStream({ text: 'ok' }));

/** Asks twice in one session; the first call may be interrupted once the vendor calls its tool. */
const talk = async (answers: readonly ResponseScript[], interrupts = false) => {
  const played = await server.play({ responses: answers });
  const model = anthropic('claude-sonnet-4-5', {
    apiKey: 'sk-ant-0123456789abcdef',
    baseURL: played.url,
    retry: false,
    builtInTools: [{ type: 'web_search_20260318', name: 'web_search' }],
  });
  const own = tool({ name: 'weather', description: 'Tells the weather.', run: () => 'Snow' });
  const agent = createAgent({ model, tools: [own] });
  const session = sessions(agent).open('u');
  if (interrupts) {
    const starts$ = agent.events$.pipe(
      filter((event) => event.type === 'reasoningChunk' && event.kind === 'block'),
      take(1),
    );
    starts$.subscribe(() => session.interrupt());
  }
  const first = await session.call('Weather?');
  await session.call('More?');
  const seen = await played.settled();
  expect(seen.flatMap(({ violations }) => violations)).toEqual([]);
  const said = seen.map(({ body }) => listAt(body, 'messages').map((it) => listAt(it, 'content')));
  return { first, said };
};

describe('X16: a call of a tool that Anthropic runs', () => {
  it('is not sent back without its result after max_tokens', async () => {
    const { first, said } = await talk([answer('max_tokens', text('I search.'), search), ok]);
    expect(first.reason).toBe('truncated');
    expect(said[1]?.[1]).toMatchObject([{ text: 'I search.' }]);
    expect(said[1]?.[1]).toHaveLength(1);
  });

  it('is not sent back without its result after an interrupt', async () => {
    const cut = [streamHeaders, bytes(contents(text('I search.'), search).join('')), stall()];
    const { first, said } = await talk([cut, ok], true);
    expect(first.reason).toBe('interrupted');
    expect(JSON.stringify(said[1])).not.toContain('server_tool_use');
    expect(said[1]?.[1]).toMatchObject([{ text: expect.stringContaining('I search.') }]);
  });

  it('is sent back alone after a pause, and continued', async () => {
    const { first, said } = await talk([
      answer('pause_turn', search),
      answer('end_turn', found, text('Snow.')),
      ok,
    ]);
    expect(first.text).toBe('Snow.');
    expect(said[1]?.[1]).toMatchObject([search]);
    expect(said[2]?.[1]).toMatchObject([search, found, { text: 'Snow.' }]);
  });

  it('beside a call of your own waits for the result of that one', async () => {
    const { first, said } = await talk([
      answer('tool_use', search, weather),
      answer('end_turn', found, text('Snow.')),
      ok,
    ]);
    expect(first.text).toBe('Snow.');
    expect(said[1]?.slice(1)).toMatchObject([[search, weather], [result]]);
    expect(said[2]?.slice(1, 4)).toMatchObject([
      [search, weather],
      [result],
      [found, { text: 'Snow.' }],
    ]);
  });

  it('that never got its result beside one of your own is not sent back', async () => {
    const { said } = await talk([
      answer('tool_use', search, weather),
      answer('end_turn', text('Snow.')),
      ok,
    ]);
    expect(said[1]?.[1]).toMatchObject([search, weather]);
    expect(said[2]?.[1]).toMatchObject([weather]);
    expect(said[2]?.[1]).toHaveLength(1);
  });

  it('that made other calls is left out with them, and yours become direct ones', () => {
    const caller = { type: 'code_execution_20260120', tool_id: 's1' };
    const vendorBlock = (data: Json): AssistantBlock => ({
      type: 'vendor',
      vendor: 'Anthropic',
      kind: String(data['type']),
      data,
    });
    const code = vendorBlock({ ...search, name: 'code_execution' });
    const nested = vendorBlock({ ...search, id: 's2', caller });
    const nestedResult = vendorBlock({ ...found, tool_use_id: 's2' });
    const mine: AssistantBlock = {
      type: 'tool_call',
      id: 't1',
      name: 'weather',
      input: {},
      vendorData: { vendor: 'Anthropic', data: { caller, later: 1 } },
    };
    const messages: readonly Message[] = [
      { id: 'a', role: 'assistant', content: [code, nested, nestedResult, mine] },
      {
        id: 't',
        role: 'tool',
        content: [{ type: 'tool_result', toolCallId: 't1', content: [], isError: false }],
      },
    ];
    const pairs = createServerToolPairs();
    expect(pairs(messages)).toEqual(messages);
    const asked: Message = { id: 'u', role: 'user', content: [{ type: 'text', text: 'And?' }] };
    expect(pairs([...messages, asked])[0]?.content).toEqual([
      { ...mine, vendorData: { vendor: 'Anthropic', data: { later: 1 } } },
    ]);
    // The same messages are serialized once.
    expect(pairs([...messages, asked])[0]).toBe(pairs([...messages, asked])[0]);
  });

  it('is found in another conversation of the same model', () => {
    const kind = 'server_tool_use';
    const content: AssistantBlock[] = [{ type: 'vendor', vendor: 'Anthropic', kind, data: search }];
    const plain = [question(0), question(1), question(2)].map(frozen);
    const pairs = createServerToolPairs();
    expect(pairs(plain)).toBe(plain);
    const [, second] = pairs([question(0), { id: 'a', role: 'assistant', content }, question(2)]);
    expect(second?.content).toEqual([]);
  });

  const block = fc.oneof(
    fc.constantFrom('a', 'b').map((id): Json => ({ ...search, id })),
    fc.constantFrom('a', 'b').map((id): Json => ({ ...found, tool_use_id: id })),
    fc.constant(text('Hm.')),
    fc.constantFrom('a', 'b').map((id): Json => ({
      ...search,
      id: `${id}2`,
      caller: { type: 'code', tool_id: id },
    })),
  );
  const turn = fc.record({
    blocks: fc.array(block, { minLength: 1, maxLength: 5 }),
    then: fc.constantFrom('result', 'failure', 'question', 'more'),
  });

  it('has its result in any conversation, no matter what was cut', () => {
    const write = messagesRequest({ model: 'claude-sonnet-4-5' });
    const naming = { toolName: (name: string) => name, toolId: toWireId };
    const headers = { 'x-api-key': 'k', 'anthropic-version': '2026-10-21' };
    const property = fc.property(fc.array(turn, { maxLength: 40 }), (turns) => {
      const messages = [question(0), ...turns.flatMap(messagesOf)].map(frozen);
      for (let length = 1; length <= messages.length; length += 1) {
        const sent = messages.slice(0, length);
        // All results of an answer are there when it is sent.
        if (sent.at(-1)?.content.some(({ type }) => type === 'tool_call') === true) continue;
        const body: unknown = JSON.parse(write({ messages: sent }, naming, 0));
        const fresh = messagesRequest({ model: 'claude-sonnet-4-5' });
        expect(body).toEqual(JSON.parse(fresh({ messages: sent }, naming, 0)));
        const problems = checkMessagesRequest(
          { ...headers, 'content-type': 'application/json' },
          body,
        );
        expect(problems).toEqual([]);
      }
    });
    fc.assert(property, { numRuns: 100 });
  });
});

const question = (at: number): Message => ({
  id: `u${at}`,
  role: 'user',
  content: [{ type: 'text', text: 'And?' }],
});

const frozen = <Value>(value: Value): Value => {
  if (typeof value === 'object' && value !== null) Object.values(value).forEach(frozen);
  return Object.freeze(value);
};

const messagesOf = (
  { blocks, then }: { readonly blocks: readonly Json[]; readonly then: string },
  at: number,
): readonly Message[] => {
  const content = blocks.map((data, index): AssistantBlock =>
    data['type'] === 'text'
      ? { type: 'text', text: `${index}` }
      : {
          type: 'vendor',
          vendor: 'Anthropic',
          kind: String(data['type']),
          data,
        },
  );
  const call: AssistantBlock = { type: 'tool_call', id: `t${at}`, name: 'weather', input: {} };
  const image = { type: 'image', source: { kind: 'url', url: 'https://a.b/c.png' } } as const;
  const isError = then === 'failure';
  return then === 'result' || isError
    ? [
        { id: `a${at}`, role: 'assistant', content: [...content, call] },
        {
          id: `r${at}`,
          role: 'tool',
          content: [
            { type: 'tool_result', toolCallId: `t${at}`, content: isError ? [image] : [], isError },
          ],
        },
      ]
    : [
        { id: `a${at}`, role: 'assistant', content },
        ...(then === 'question' ? [question(at + 1)] : []),
      ];
};
