import { type Answer, type AnsweredFinish, type AnsweredUsage, wholeAnswer } from './answer.js';
import { sse } from './sse.js';

type Json = Readonly<Record<string, unknown>>;

const head = (model: string): Json => ({
  id: 'chatcmpl-CfaULt5erver',
  created: 1_764_000_000,
  model,
  service_tier: 'default',
  system_fingerprint: 'fp_a1b2c3d4e5',
});

const finishes: Readonly<Record<AnsweredFinish, string>> = {
  stop: 'stop',
  toolCalls: 'tool_calls',
  length: 'length',
  filtered: 'content_filter',
  refusal: 'stop',
  pause: 'stop',
};

const defaultModel = 'gpt-5-mini-2025-08-07';

/** The `usage` of a chat completion. */
export const chatUsage = ({ input, cached, output }: AnsweredUsage): Json => ({
  prompt_tokens: input,
  completion_tokens: output,
  total_tokens: input + output,
  prompt_tokens_details: { cached_tokens: cached, audio_tokens: 0 },
  completion_tokens_details: {
    reasoning_tokens: 0,
    audio_tokens: 0,
    accepted_prediction_tokens: 0,
    rejected_prediction_tokens: 0,
  },
});

/** One event of a chat completion's stream, with the fields that every one of them has. */
export const chatChunk = (fields: Json, model = defaultModel): string =>
  sse({
    ...head(model),
    object: 'chat.completion.chunk',
    usage: null,
    obfuscation: 'k3Jx9',
    ...fields,
  });

/** An event with a delta of the one choice. */
export const chatDelta = (delta: Json, finish: string | null = null, model?: string): string =>
  chatChunk({ choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }] }, model);

/** The end of a chat completion's stream. */
export const chatDone = 'data: [DONE]\n\n';

/**
 * A chat completion as a stream: the role, deltas, the finish, the usage with no choices, `[DONE]`. Thinking is in
 * `reasoning_content`. https://platform.openai.com/docs/api-reference/chat-streaming
 */
export const chatStream = (answer: Answer): readonly string[] => {
  const whole = wholeAnswer(answer, 'call_Fa0', defaultModel);
  const delta = (fields: Json, finish: string | null = null): string =>
    chatDelta(fields, finish, whole.model);
  return [
    delta({ role: 'assistant', content: whole.toolCalls.length > 0 ? null : '', refusal: null }),
    ...whole.thinking.map((text) => delta({ reasoning_content: text })),
    ...whole.text.map((text) => delta({ content: text })),
    ...whole.refusal.map((text) => delta({ refusal: text })),
    ...whole.toolCalls.flatMap(({ id, name, arguments: deltas }, index) => [
      delta({
        tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }],
      }),
      ...deltas.map((text) => delta({ tool_calls: [{ index, function: { arguments: text } }] })),
    ]),
    delta({}, finishes[whole.finish]),
    chatChunk({ choices: [], usage: chatUsage(whole.usage) }, whole.model),
    chatDone,
  ];
};

/** The same completion as one JSON body. https://platform.openai.com/docs/api-reference/chat/object */
export const chatBody = (answer: Answer): Json => {
  const { thinking, text, refusal, toolCalls, usage, finish, model } = wholeAnswer(
    answer,
    'call_Fa0',
    defaultModel,
  );
  const calls = toolCalls.map(({ id, name, arguments: deltas }) => ({
    id,
    type: 'function',
    function: { name, arguments: deltas.join('') },
  }));
  const message = {
    role: 'assistant',
    content: text.length > 0 ? text.join('') : null,
    refusal: refusal.length > 0 ? refusal.join('') : null,
    annotations: [],
    ...(thinking.length > 0 ? { reasoning_content: thinking.join('') } : {}),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  };
  return {
    ...head(model),
    object: 'chat.completion',
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishes[finish] }],
    usage: chatUsage(usage),
  };
};
