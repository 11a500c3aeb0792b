import { type Answer, type AnsweredFinish, type AnsweredUsage, wholeAnswer } from './answer.js';
import { sse } from './sse.js';

type Json = Readonly<Record<string, unknown>>;

const stopReasons: Readonly<Record<AnsweredFinish, string>> = {
  stop: 'end_turn',
  toolCalls: 'tool_use',
  length: 'max_tokens',
  filtered: 'refusal',
  refusal: 'refusal',
  pause: 'pause_turn',
};

const defaultModel = 'claude-sonnet-4-5-20250929';

/** The `usage` of a message. Cached tokens are counted apart from the others. */
export const messagesUsage = ({ input, cached, output }: AnsweredUsage): Json => ({
  input_tokens: input - cached,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: cached,
  cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
  output_tokens: output,
  service_tier: 'standard',
  inference_geo: 'not_available',
});

/** One event of a message's stream: the event's name is the type of its data. */
export const messagesEvent = (data: Json & { readonly type: string }): string =>
  sse(data, data.type);

/** The first event. Its `content` is empty, but not with every server that speaks this wire. */
export const messageStart = (
  usage: Json | null,
  model = defaultModel,
  content: readonly Json[] = [],
): string =>
  messagesEvent({
    type: 'message_start',
    message: { ...messageHead(model), content, stop_reason: null, usage },
  });

/** A sign of life. */
export const ping = messagesEvent({ type: 'ping' });

/** The events of one block of content. */
export const messagesBlock = (
  index: number,
  start: Json,
  deltas: readonly Json[],
): readonly string[] => [
  messagesEvent({ type: 'content_block_start', index, content_block: start }),
  ...deltas.map((delta) => messagesEvent({ type: 'content_block_delta', index, delta })),
  messagesEvent({ type: 'content_block_stop', index }),
];

/** The last two events. */
export const messageEnd = (stopReason: string, usage: Json | null): readonly string[] => [
  messagesEvent({
    type: 'message_delta',
    delta: { stop_reason: stopReason, stop_sequence: null, container: null },
    usage,
  }),
  messagesEvent({ type: 'message_stop' }),
];

const messageHead = (model: string): Json => ({
  model,
  id: 'msg_01FaultServer',
  type: 'message',
  role: 'assistant',
  stop_sequence: null,
  container: null,
});

const signature = 'EqQBCgIYAhIkFault+Server/Signature==';

/**
 * A message as a stream: its start, each block of content with its deltas, a ping, the stop reason with the usage,
 * the stop. https://platform.claude.com/docs/en/build-with-claude/streaming
 */
export const messagesStream = (answer: Answer): readonly string[] => {
  const whole = wholeAnswer(answer, 'toolu_01Fa', defaultModel);
  const blocks = [
    ...(whole.thinking.length > 0
      ? [
          {
            start: { type: 'thinking', thinking: '', signature: '' },
            deltas: [
              ...whole.thinking.map((thinking) => ({ type: 'thinking_delta', thinking })),
              { type: 'signature_delta', signature },
            ],
          },
        ]
      : []),
    ...[whole.text, whole.refusal]
      .filter((texts) => texts.length > 0)
      .map((texts) => ({
        start: { type: 'text', text: '', citations: null },
        deltas: texts.map((text) => ({ type: 'text_delta', text })),
      })),
    ...whole.toolCalls.map(({ id, name, arguments: deltas }) => ({
      start: { type: 'tool_use', id, name, input: {}, caller: { type: 'direct' } },
      deltas: ['', ...deltas].map((json) => ({ type: 'input_json_delta', partial_json: json })),
    })),
  ].map(({ start, deltas }, index) => messagesBlock(index, start, deltas));
  return [
    messageStart(messagesUsage({ ...whole.usage, output: 1 }), whole.model),
    ping,
    ...blocks.flat(),
    ...messageEnd(stopReasons[whole.finish], messagesUsage(whole.usage)),
  ];
};

/** The same message as one JSON body. https://platform.claude.com/docs/en/api/messages */
export const messagesBody = (answer: Answer): Json => {
  const whole = wholeAnswer(answer, 'toolu_01Fa', defaultModel);
  const { thinking, text, refusal, toolCalls, finish, usage } = whole;
  const said = [...text, ...refusal].join('');
  return {
    ...messageHead(whole.model),
    content: [
      ...(thinking.length > 0
        ? [{ type: 'thinking', thinking: thinking.join(''), signature }]
        : []),
      ...(said === '' ? [] : [{ type: 'text', text: said, citations: null }]),
      ...toolCalls.map(({ id, name, arguments: deltas }) => ({
        type: 'tool_use',
        id,
        name,
        input: inputOf(deltas.join('')),
        caller: { type: 'direct' },
      })),
    ],
    stop_reason: stopReasons[finish],
    usage: messagesUsage(usage),
  };
};

const inputOf = (json: string): unknown => (json === '' ? {} : JSON.parse(json));
