import { answerOf, deltasOf } from './answer.js';
import { bearer } from './bearer.js';
import { at, listAt, plainText, textAt } from './paths.js';
import { Refusal } from './refusal.js';
import type { Said } from './said.js';
import { sseEvent } from './sse.js';
import { jsonPieces, toolCallsOf } from './tool-call.js';
import type { Wire } from './wire.js';

/** Anthropic's messages (https://docs.claude.com/en/api/messages). */
export const messagesWire: Wire = {
  path: '/messages',
  // Its SDK sends one or the other, as its version has it.
  keyOf: (headers) => headers['x-api-key'] ?? bearer(headers),
  read: (body) => {
    if (typeof body['max_tokens'] !== 'number') throw new Refusal('max_tokens: Field required');
    return {
      said: listAt(body, 'messages').flatMap(saidBy),
      tools: listAt(body, 'tools').map((tool) => textAt(tool, 'name')),
    };
  },
  toolFrames: (message, count, isWhole) => [
    ...firstFrames(`msg_bench_${message}`),
    ...toolCallsOf(message, count).flatMap(({ id, name }, index) => [
      blockStart(index, { type: 'tool_use', id, name, input: {} }),
      ...['', ...jsonPieces(index, isWhole)].map((piece) =>
        blockDelta(index, { type: 'input_json_delta', partial_json: piece }),
      ),
      blockStop(index),
    ]),
    ...lastFrames('tool_use', count * 20),
  ],
  answerFrames: (message, deltas) => [
    ...firstFrames(`msg_bench_${message}`),
    blockStart(0, { type: 'text', text: '' }),
    ...deltasOf(deltas).map((text) => blockDelta(0, { type: 'text_delta', text })),
    blockStop(0),
    ...lastFrames('end_turn', deltas),
  ],
  wholeTools: (message, count) =>
    wholeMessage(
      `msg_bench_${message}`,
      toolCallsOf(message, count).map(({ id, name, json }) => {
        const input: unknown = JSON.parse(json);
        return { type: 'tool_use', id, name, input };
      }),
      'tool_use',
      count * 20,
    ),
  wholeAnswer: (message, deltas) =>
    wholeMessage(
      `msg_bench_${message}`,
      [{ type: 'text', text: answerOf(deltas) }],
      'end_turn',
      deltas,
    ),
};

/** Results stand in a message of the user; only one with something else in it is a question. */
const saidBy = (message: unknown): readonly Said[] => {
  const content = at(message, 'content');
  const blocks: readonly unknown[] = Array.isArray(content) ? content : [{ type: 'text' }];
  const ofType = (type: string) => blocks.filter((block) => textAt(block, 'type') === type);
  if (textAt(message, 'role') === 'assistant') {
    const uses = ofType('tool_use').map((block) => ({
      id: textAt(block, 'id'),
      name: textAt(block, 'name'),
      json: JSON.stringify(at(block, 'input')),
    }));
    return [{ role: 'assistant', uses }];
  }
  const results = ofType('tool_result').map((block) => ({
    id: textAt(block, 'tool_use_id'),
    text: plainText(at(block, 'content')),
  }));
  return [
    ...(results.length > 0 ? [{ role: 'tool', results } as const] : []),
    ...(results.length < blocks.length ? [{ role: 'user' } as const] : []),
  ];
};

const wholeMessage = (
  id: string,
  content: readonly object[],
  stopReason: string | null,
  tokens: number,
) => ({
  id,
  type: 'message',
  role: 'assistant',
  model: 'bench',
  content,
  stop_reason: stopReason,
  stop_sequence: null,
  usage: {
    input_tokens: 100,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    output_tokens: tokens,
  },
});

const firstFrames = (id: string): readonly Buffer[] => [
  sseEvent({ type: 'message_start', message: wholeMessage(id, [], null, 1) }),
  sseEvent({ type: 'ping' }),
];

const blockStart = (index: number, block: object): Buffer =>
  sseEvent({ type: 'content_block_start', index, content_block: block });

const blockDelta = (index: number, delta: object): Buffer =>
  sseEvent({ type: 'content_block_delta', index, delta });

const blockStop = (index: number): Buffer => sseEvent({ type: 'content_block_stop', index });

const lastFrames = (stopReason: string, tokens: number): readonly Buffer[] => [
  sseEvent({
    type: 'message_delta',
    delta: { stop_reason: stopReason, stop_sequence: null },
    usage: { output_tokens: tokens },
  }),
  sseEvent({ type: 'message_stop' }),
];
