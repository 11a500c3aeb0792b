import { deltasOf, answerOf } from './answer.js';
import { bearer } from './bearer.js';
import { at, listAt, plainText, textAt } from './paths.js';
import type { Said } from './said.js';
import { sseData } from './sse.js';
import { jsonPieces, type ToolCall, toolCallsOf } from './tool-call.js';
import type { Wire } from './wire.js';

/** OpenAI's chat completions (https://platform.openai.com/docs/api-reference/chat). */
export const chatWire: Wire = {
  path: '/chat/completions',
  keyOf: bearer,
  read: (body) => ({
    said: listAt(body, 'messages').flatMap(saidBy),
    tools: listAt(body, 'tools').map((tool) => textAt(at(tool, 'function'), 'name')),
  }),
  toolFrames: (message, count, isWhole) =>
    streamed(`chatcmpl-${message}`, 'tool_calls', count * 20, isWhole, [
      { role: 'assistant', content: null },
      ...toolCallsOf(message, count).flatMap((call, index) => useDeltas(call, index, isWhole)),
    ]),
  answerFrames: (message, deltas, isWhole) =>
    streamed(`chatcmpl-${message}`, 'stop', deltas, isWhole, [
      { role: 'assistant', content: '' },
      ...deltasOf(deltas).map((content) => ({ content })),
    ]),
  wholeTools: (message, count) =>
    whole(`chatcmpl-${message}`, 'tool_calls', count * 20, {
      content: null,
      tool_calls: toolCallsOf(message, count).map(({ id, name, json }) => ({
        id,
        type: 'function',
        function: { name, arguments: json },
      })),
    }),
  wholeAnswer: (message, deltas) =>
    whole(`chatcmpl-${message}`, 'stop', deltas, { content: answerOf(deltas) }),
};

const saidBy = (message: unknown): readonly Said[] => {
  switch (textAt(message, 'role')) {
    case 'user':
      return [{ role: 'user' }];
    case 'assistant':
      return [{ role: 'assistant', uses: listAt(message, 'tool_calls').map(useOf) }];
    case 'tool': {
      const text = plainText(at(message, 'content'));
      return [{ role: 'tool', results: [{ id: textAt(message, 'tool_call_id'), text }] }];
    }
    default:
      return [];
  }
};

const useOf = (call: unknown): ToolCall => {
  const asked = at(call, 'function');
  return { id: textAt(call, 'id'), name: textAt(asked, 'name'), json: textAt(asked, 'arguments') };
};

const head = { created: 1_700_000_000, model: 'bench', system_fingerprint: 'fp_bench' };

/** The id of each message is another: there are clients that take equal ones for the same. */
const streamed = (
  id: string,
  finish: string,
  tokens: number,
  isWhole = false,
  deltas: readonly object[],
): readonly Buffer[] => {
  const chunk = (rest: object): Buffer =>
    sseData({
      id,
      object: 'chat.completion.chunk',
      ...head,
      ...(isWhole && { service_tier: 'default', usage: null }),
      ...rest,
    });
  const choice = (delta: object, finishReason: string | null = null): Buffer =>
    chunk({ choices: [{ index: 0, delta, logprobs: null, finish_reason: finishReason }] });
  return [
    ...deltas.map((delta) => choice(delta)),
    choice({}, finish),
    chunk({ choices: [], usage: usage(tokens) }),
    Buffer.from('data: [DONE]\n\n'),
  ];
};

const useDeltas = (
  { id, name }: ToolCall,
  index: number,
  isWhole: boolean | undefined,
): readonly object[] => [
  { tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] },
  ...jsonPieces(index, isWhole).map((piece) => ({
    tool_calls: [{ index, function: { arguments: piece } }],
  })),
];

const usage = (tokens: number) => ({
  prompt_tokens: 100,
  completion_tokens: tokens,
  total_tokens: 100 + tokens,
});

const whole = (id: string, finish: string, tokens: number, message: object) => ({
  id,
  object: 'chat.completion',
  ...head,
  choices: [
    {
      index: 0,
      message: { role: 'assistant', refusal: null, ...message },
      logprobs: null,
      finish_reason: finish,
    },
  ],
  usage: usage(tokens),
});
