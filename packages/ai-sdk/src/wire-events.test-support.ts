import type { Response } from './serve.test-support.js';

/** Events as their vendors send them, for answers in odd orders that `wires.test-support.ts` does not have. */
const events = (list: readonly (object | string)[]): Response => ({
  headers: { 'content-type': 'text/event-stream' },
  frames: list.map((it) => {
    const name = typeof it === 'object' && 'type' in it ? `event: ${String(it.type)}\n` : '';
    return `${name}data: ${typeof it === 'string' ? it : JSON.stringify(it)}\n\n`;
  }),
});

/** An answer of chat completions: a choice in each chunk. */
export const completion = (...choices: readonly object[]): Response =>
  events([
    ...choices.map((choice) => ({
      ...{ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm' },
      choices: [{ index: 0, finish_reason: null, delta: {}, ...choice }],
    })),
    '[DONE]',
  ]);

/** A chunk with a whole tool call. */
export const chatCall = (index: number, name: string, json: string, more: object = {}): object => ({
  delta: {
    tool_calls: [
      { index, id: `call_${index}`, type: 'function', function: { name, arguments: json } },
    ],
  },
  ...more,
});
export const chatStop = { finish_reason: 'stop' };
export const chatCalls = { finish_reason: 'tool_calls' };
export const chatText = (content: string): Response => completion({ delta: { content } }, chatStop);

const body = { object: 'response', id: 'r1', model: 'm', created_at: 1 };
/** An answer of the Responses API. */
export const response = (...list: readonly object[]): Response =>
  events([{ type: 'response.created', response: { ...body, output: [] } }, ...list]);
export const completed = (output: readonly object[] = []): object => ({
  type: 'response.completed',
  response: {
    ...{ ...body, output, status: 'completed' },
    usage: { input_tokens: 5, output_tokens: 3, total_tokens: 8 },
  },
});
export const itemAdded = (output_index: number, item: object): object => ({
  ...{ type: 'response.output_item.added', output_index, item },
});
export const itemDone = (output_index: number, item: object): object => ({
  ...{ type: 'response.output_item.done', output_index, item },
});
export const textDelta = (item_id: string, output_index: number, delta: string): object => ({
  ...{ type: 'response.output_text.delta', item_id, output_index, content_index: 0, delta },
});
export const messageItem = (id: string, more: object = {}): object => ({
  ...{ type: 'message', id, role: 'assistant', content: [] },
  ...more,
});
/** A whole message: the item at an index, with its text in deltas. */
export const message = (index: number, ...deltas: readonly string[]): readonly object[] => [
  itemAdded(index, messageItem(`m${index}`)),
  ...deltas.map((delta) => textDelta(`m${index}`, index, delta)),
  itemDone(index, messageItem(`m${index}`)),
];
export const responseText = (text: string): Response => response(...message(0, text), completed());

/** An answer of the Messages API: blocks, each with its deltas. */
export const claudeBlocks = (
  blocks: readonly (readonly object[])[],
  { stop = 'end_turn', delta = {}, usage = {}, between = [] }: ClaudeEnd = {},
): Response =>
  events([
    {
      type: 'message_start',
      message: {
        ...{ id: 'a1', type: 'message', role: 'assistant', model: 'm', content: [] },
        ...{ stop_reason: null, stop_sequence: null },
        usage: { input_tokens: 10, output_tokens: 1 },
      },
    },
    ...blocks.flatMap(([content_block, ...deltas], index) => [
      { type: 'content_block_start', index, content_block },
      ...between,
      ...deltas.map((it) => ({ type: 'content_block_delta', index, delta: it })),
      { type: 'content_block_stop', index },
      ...between,
    ]),
    {
      type: 'message_delta',
      delta: { stop_reason: stop, stop_sequence: null, ...delta },
      usage: { output_tokens: 7, ...usage },
    },
    { type: 'message_stop' },
  ]);

interface ClaudeEnd {
  readonly stop?: string;
  readonly delta?: object;
  readonly usage?: object;
  /** Events within each block and after it, such as pings. */
  readonly between?: readonly object[];
}

export const claudeText = (text: string): Response => claudeBlocks([textBlock(text)]);
export const textBlock = (text: string): readonly object[] => [
  { type: 'text', text: '' },
  { type: 'text_delta', text },
];
