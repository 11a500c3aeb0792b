import { streamed } from '../steps.js';
import { chatDelta, chatDone } from '../streams/chat-stream.js';
import {
  messageEnd,
  messagesBlock,
  messagesEvent,
  messageStart,
} from '../streams/messages-stream.js';
import { responseObject, responsesEvents } from '../streams/responses-stream.js';
import { answering, done, type Expectation, type Fault, isDone, isSunny } from './fault.js';
import { oslo, runsOslo } from './tool-calls.js';

type Json = Readonly<Record<string, unknown>>;

interface Row {
  readonly id: string;
  readonly about: string;
  readonly events: readonly string[];
  readonly expects: Expectation;
}

/** The text of what a request must contain. */
const sent = (...items: readonly Json[]): readonly string[] =>
  items.map((item) => JSON.stringify(item));

const response = (output: readonly Json[], listed: readonly Json[] = output): readonly string[] =>
  responsesEvents([
    ...output.map((item, index) => ({
      type: 'response.output_item.done',
      output_index: index,
      item,
    })),
    {
      type: 'response.completed',
      response: responseObject({ status: 'completed', output: listed }),
    },
  ]);
const said = { type: 'message', id: 'msg_1', role: 'assistant' };
const sunnyPart = { type: 'output_text', text: 'It is sunny.', annotations: [] };
const sunnyItem = { ...said, content: [sunnyPart] };
const weatherCall = {
  type: 'function_call',
  id: 'fc_1',
  call_id: 'call_9',
  name: 'weather',
  arguments: oslo,
};
const hologram = { type: 'hologram_call', id: 'holo_1', light: 'green' };
const image = { type: 'image', source: { kind: 'url', url: 'https://example.com/screen.png' } };
const unknownPart = { type: 'output_hologram', light: 'green' };
const container = { environment: { type: 'container_auto' } };

const resumed = (resumes: Json, ...sends: readonly Json[]): Expectation => ({
  outcome: isDone,
  requests: 2,
  resumes,
  sends: sent(...sends),
});
const reads: Expectation = { outcome: isSunny, requests: 1 };

/** A call that waits for the program, and its result as the vendor wants it. */
const waiting = (type: string, fields: Json, result: unknown, output: Json): Row => {
  const item = { type: `${type}_call`, id: 'item_1', call_id: 'call_1', ...fields };
  const written = { type: `${type}_call_output`, ...output };
  return {
    id: `${type.replaceAll('_', '-')}-waits`,
    about: `A call of the type ${type}_call waits for the program.`,
    events: response([item]),
    expects: resumed({ call_1: result }, item, written),
  };
};

const approval = {
  type: 'mcp_approval_request',
  id: 'mcpr_1',
  name: 'roll',
  server_label: 'dice',
  arguments: '{"dice":"2d4"}',
};
const decided = (approve: boolean): Row => ({
  id: `approval-${approve ? 'given' : 'denied'}`,
  about: `A call of a hosted MCP tool waits for an approval, which is ${approve ? 'given' : 'denied'}.`,
  events: response([approval]),
  expects: resumed({ mcpr_1: approve }, approval, {
    type: 'mcp_approval_response',
    approval_request_id: 'mcpr_1',
    approve,
  }),
});

const responses: readonly Row[] = [
  decided(true),
  decided(false),
  {
    id: 'custom-waits',
    about: 'A call of a custom tool that nobody has waits for the program.',
    events: response([
      { type: 'custom_tool_call', id: 'ctc_1', call_id: 'call_1', name: 'patch', input: '"*' },
    ]),
    expects: resumed(
      { call_1: 'Applied.' },
      { type: 'custom_tool_call', call_id: 'call_1', name: 'patch', input: '"*' },
      { type: 'custom_tool_call_output', call_id: 'call_1', output: 'Applied.' },
    ),
  },
  waiting('shell', { action: { commands: ['ls'] } }, 'a.txt', {
    call_id: 'call_1',
    output: [{ stdout: 'a.txt', stderr: '', outcome: { type: 'exit', exit_code: 0 } }],
  }),
  waiting('local_shell', { action: { command: ['ls'] } }, 'a.txt', {
    id: 'call_1',
    output: 'a.txt',
  }),
  waiting('apply_patch', { operation: { type: 'delete_file', path: 'a' } }, 'Gone.', {
    call_id: 'call_1',
    status: 'completed',
    output: 'Gone.',
  }),
  waiting('computer', { action: { type: 'screenshot' } }, image, {
    call_id: 'call_1',
    output: { type: 'computer_screenshot', image_url: image.source.url },
  }),
  {
    id: 'call-beside-approval',
    about: 'A tool runs, although a call beside it waits for an approval.',
    events: response([approval, weatherCall]),
    expects: { ...resumed({ mcpr_1: true }, approval), runs: runsOslo },
  },
  {
    id: 'action-not-completed',
    about: 'A call of a shell begins, but is never completed.',
    events: responsesEvents([
      {
        type: 'response.output_item.added',
        output_index: 0,
        item: { type: 'shell_call', id: 'item_1', call_id: 'call_1', action: { commands: ['rm'] } },
      },
      {
        type: 'response.completed',
        response: responseObject({ status: 'completed', output: [] }),
      },
    ]),
    expects: { outcome: { answer: '' }, requests: 1 },
  },
  {
    id: 'shell-of-the-vendor',
    about: 'The vendor runs a call of a shell in its own container.',
    events: response([
      { type: 'shell_call', id: 'item_1', call_id: 'call_1', action: {}, ...container },
      { type: 'shell_call_output', id: 'item_2', call_id: 'call_1', output: [] },
      sunnyItem,
    ]),
    expects: reads,
  },
  {
    id: 'only-unknown-item',
    about: 'The only item of the response is of an unknown type.',
    events: response([hologram]),
    expects: { outcome: { answer: '' }, requests: 1 },
  },
  {
    id: 'unknown-item-and-call',
    about: 'An item of an unknown type is beside a call, and goes back with it.',
    events: response([hologram, weatherCall]),
    expects: { outcome: isDone, requests: 2, runs: runsOslo, sends: sent(hologram) },
  },
  {
    id: 'unknown-part-and-call',
    about: 'A message has a part of an unknown type, which goes back.',
    events: response([{ ...said, content: [sunnyPart, unknownPart] }, weatherCall]),
    expects: { outcome: isDone, requests: 2, runs: runsOslo, sends: sent(unknownPart) },
  },
  {
    id: 'search-of-the-vendor',
    about: 'The vendor searches, and lists tools.',
    events: response([
      { type: 'web_search_call', id: 'ws_1', status: 'completed', action: {} },
      { type: 'mcp_list_tools', id: 'mcpl_1', server_label: 'dice', tools: [] },
      sunnyItem,
    ]),
    expects: reads,
  },
  {
    id: 'unknown-event',
    about: 'There are events of an unknown type.',
    events: [
      ...responsesEvents([{ type: 'response.hologram.delta', delta: 'x' }]),
      ...response([sunnyItem]),
    ],
    expects: reads,
  },
];

const blocks = (stop: string, ...content: readonly Json[]): readonly string[] => [
  messageStart(null),
  ...content.flatMap((block, index) => messagesBlock(index, block, [])),
  ...messageEnd(stop, null),
];
const search = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} };
const found = { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] };
const use = { type: 'tool_use', id: 'toolu_1', name: 'weather', input: { city: 'Oslo' } };
const text = { type: 'text', text: 'It is sunny.' };
const runs: Expectation = { outcome: isDone, requests: 2, runs: runsOslo };

const messages: readonly Row[] = [
  {
    id: 'search-of-the-vendor',
    about: 'The vendor searches, and asks an MCP server.',
    events: blocks(
      'end_turn',
      search,
      found,
      { type: 'mcp_tool_use', id: 'mcptoolu_1', name: 'roll', server_name: 'dice', input: {} },
      { type: 'mcp_tool_result', tool_use_id: 'mcptoolu_1', is_error: false, content: [] },
      text,
    ),
    expects: reads,
  },
  {
    id: 'search-before-call',
    about: 'The vendor searches before a call, and gets all of it back.',
    events: blocks('tool_use', search, found, use),
    expects: { ...runs, sends: sent(search, found) },
  },
  {
    id: 'search-waits-for-call',
    about: 'The vendor searches only after the call beside it has its result.',
    events: blocks('tool_use', search, use),
    expects: { ...runs, sends: sent(search) },
  },
  {
    id: 'search-cut-off',
    about: 'The limit of tokens comes before the result of a search.',
    events: blocks('max_tokens', search),
    expects: { outcome: { reason: 'truncated' }, requests: 1 },
  },
  {
    id: 'search-paused',
    about: 'The vendor pauses during a search.',
    events: blocks('pause_turn', search),
    expects: { outcome: isDone, requests: 2, pauses: 1, sends: sent(search) },
  },
  {
    id: 'call-paused',
    about: 'The vendor pauses after a call, which needs a result first.',
    events: blocks('pause_turn', use),
    expects: runs,
  },
  {
    id: 'container',
    about: 'Code of the vendor calls a tool, and goes on in its container.',
    events: [
      messageStart(null),
      ...messagesBlock(0, { ...search, name: 'code_execution' }, []),
      ...messagesBlock(
        1,
        { ...use, caller: { type: 'code_execution_20260120', tool_id: search.id } },
        [],
      ),
      messagesEvent({
        type: 'message_delta',
        delta: { stop_reason: 'tool_use', container: { id: 'container_1', expires_at: null } },
      }),
      messagesEvent({ type: 'message_stop' }),
    ],
    expects: { ...runs, sends: ['"container":"container_1"', '"tool_id":"srvtoolu_1"'] },
  },
  {
    id: 'unknown-block-goes-back',
    about: 'A block of an unknown type is beside a call, and goes back with it.',
    events: blocks('tool_use', { type: 'tomorrow', id: 'new_1', notes: 'n' }, use),
    expects: { ...runs, sends: sent({ type: 'tomorrow', id: 'new_1', notes: 'n' }) },
  },
];

const chatCall = (call: Json): string =>
  chatDelta({ tool_calls: [{ index: 0, id: 'call_1', ...call }] });
const custom = (input: string): Json => ({ type: 'custom', custom: { name: 'patch', input } });

const chat: readonly Row[] = [
  {
    id: 'custom-waits',
    about: 'A call of a custom tool that nobody has waits for the program.',
    events: [chatCall(custom('"*')), chatDelta({}, 'tool_calls'), chatDone],
    expects: resumed({ call_1: 'Applied.' }, { name: 'patch', input: '"*' }),
  },
  {
    id: 'unknown-call',
    about: 'A call of an unknown type comes in pieces.',
    events: [
      chatDelta({ content: 'It is sunny.' }),
      chatCall({ type: 'hologram', hologram: { light: 'gr' } }),
      chatCall({ hologram: { light: 'een' } }),
      chatDelta({}, 'stop'),
      chatDone,
    ],
    expects: reads,
  },
  {
    id: 'unknown-part',
    about: 'The content has a part of an unknown type.',
    events: [
      chatDelta(
        { content: [{ type: 'text', text: 'It is sunny.' }, { type: 'hologram' }] },
        'stop',
      ),
      chatDone,
    ],
    expects: reads,
  },
];

/** What only the vendor understands, and what waits for the program. */
export const vendorItemFaults: readonly Fault[] = (
  [
    ['responses', responses],
    ['messages', messages],
    ['chat', chat],
  ] as const
).flatMap(([wire, rows]) =>
  rows.map(({ id, about, events, expects }): Fault => ({
    id: `vendor-${wire}-${id}`,
    row: 'X30',
    about,
    wires: [wire],
    scenario: () => ({ responses: [streamed(events), answering(wire, done)] }),
    expects,
  })),
);
