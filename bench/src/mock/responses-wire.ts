import { answerOf, deltasOf } from './answer.js';
import { bearer } from './bearer.js';
import { at, listAt, plainText, textAt } from './paths.js';
import { Refusal } from './refusal.js';
import type { Said } from './said.js';
import { sseEvent, type TypedEvent } from './sse.js';
import { jsonPieces, type ToolCall, toolCallsOf } from './tool-call.js';
import type { Wire } from './wire.js';

/** OpenAI's Responses (https://platform.openai.com/docs/api-reference/responses). */
export const responsesWire: Wire = {
  path: '/responses',
  keyOf: bearer,
  read: (body) => {
    if (typeof body['previous_response_id'] === 'string') {
      throw new Refusal('Previous response not found: nothing is kept here.');
    }
    const isText = typeof body['input'] === 'string';
    return {
      said: isText ? [{ role: 'user' }] : joined(listAt(body, 'input').flatMap(saidBy)),
      tools: listAt(body, 'tools').map((tool) => textAt(tool, 'name')),
    };
  },
  toolFrames: (message, count) => {
    const uses = toolCallsOf(message, count);
    const id = `resp_bench_${message}`;
    return numbered([
      ...firstEvents(id),
      ...uses.flatMap(useEvents),
      {
        type: 'response.completed',
        response: response(id, 'completed', uses.map(callItem), count * 20),
      },
    ]);
  },
  answerFrames: (message, deltas) => {
    const text = answerOf(deltas);
    const place = { item_id: `msg_bench_${message}`, output_index: 0, content_index: 0 };
    const part = { type: 'output_text', text, annotations: [], logprobs: [] };
    return numbered([
      ...firstEvents(`resp_bench_${message}`),
      {
        type: 'response.output_item.added',
        output_index: 0,
        item: { ...messageItem(message, ''), status: 'in_progress', content: [] },
      },
      { type: 'response.content_part.added', ...place, part: { ...part, text: '' } },
      ...deltasOf(deltas).map((delta) => ({
        type: 'response.output_text.delta',
        ...place,
        delta,
        logprobs: [],
      })),
      { type: 'response.output_text.done', ...place, text, logprobs: [] },
      { type: 'response.content_part.done', ...place, part },
      { type: 'response.output_item.done', output_index: 0, item: messageItem(message, text) },
      {
        type: 'response.completed',
        response: response(
          `resp_bench_${message}`,
          'completed',
          [messageItem(message, text)],
          deltas,
        ),
      },
    ]);
  },
  wholeTools: (message, count) =>
    response(
      `resp_bench_${message}`,
      'completed',
      toolCallsOf(message, count).map(callItem),
      count * 20,
    ),
  wholeAnswer: (message, deltas) =>
    response(
      `resp_bench_${message}`,
      'completed',
      [messageItem(message, answerOf(deltas))],
      deltas,
    ),
};

const saidBy = (item: unknown): readonly Said[] => {
  const id = textAt(item, 'call_id');
  switch (textAt(item, 'type')) {
    case 'function_call': {
      const use = { id, name: textAt(item, 'name'), json: textAt(item, 'arguments') };
      return [{ role: 'assistant', uses: [use] }];
    }
    case 'function_call_output':
      return [{ role: 'tool', results: [{ id, text: plainText(at(item, 'output')) }] }];
    case '':
    case 'message':
      return spokenBy(textAt(item, 'role'));
    default:
      return [];
  }
};

const spokenBy = (role: string): readonly Said[] => {
  if (role === 'user') return [{ role }];
  return role === 'assistant' ? [{ role, uses: [] }] : [];
};

/** Each tool use is an item of its own here. */
const joined = (said: readonly Said[]): readonly Said[] => {
  const all: Said[] = [];
  for (const step of said) {
    const last = all.at(-1);
    if (step.role === 'assistant' && last?.role === 'assistant') {
      all[all.length - 1] = { role: 'assistant', uses: [...last.uses, ...step.uses] };
    } else all.push(step);
  }
  return all;
};

const response = (id: string, status: string, output: readonly object[], tokens: number) => ({
  id,
  object: 'response',
  created_at: 1_700_000_000,
  status,
  background: false,
  error: null,
  incomplete_details: null,
  instructions: null,
  max_output_tokens: null,
  model: 'bench',
  output,
  parallel_tool_calls: true,
  previous_response_id: null,
  reasoning: { effort: null, summary: null },
  store: false,
  temperature: 1,
  text: { format: { type: 'text' } },
  tool_choice: 'auto',
  tools: [],
  top_p: 1,
  truncation: 'disabled',
  usage:
    status === 'completed'
      ? {
          input_tokens: 100,
          input_tokens_details: { cached_tokens: 0 },
          output_tokens: tokens,
          output_tokens_details: { reasoning_tokens: 0 },
          total_tokens: 100 + tokens,
        }
      : null,
  user: null,
  metadata: {},
});

const messageItem = (message: number, text: string) => ({
  id: `msg_bench_${message}`,
  type: 'message',
  status: 'completed',
  role: 'assistant',
  content: [{ type: 'output_text', text, annotations: [], logprobs: [] }],
});

const callItem = ({ id, name, json }: ToolCall) => ({
  id: `fc_${id}`,
  type: 'function_call',
  status: 'completed',
  arguments: json,
  call_id: id,
  name,
});

const firstEvents = (id: string): readonly TypedEvent[] =>
  ['response.created', 'response.in_progress'].map((type) => ({
    type,
    response: response(id, 'in_progress', [], 0),
  }));

const useEvents = (use: ToolCall, index: number): readonly TypedEvent[] => {
  const place = { item_id: `fc_${use.id}`, output_index: index };
  return [
    {
      type: 'response.output_item.added',
      output_index: index,
      item: { ...callItem(use), status: 'in_progress', arguments: '' },
    },
    ...jsonPieces(index).map((delta) => ({
      type: 'response.function_call_arguments.delta',
      ...place,
      delta,
    })),
    { type: 'response.function_call_arguments.done', ...place, arguments: use.json },
    { type: 'response.output_item.done', output_index: index, item: callItem(use) },
  ];
};

const numbered = (events: readonly TypedEvent[]): readonly Buffer[] =>
  events.map((event, index) => sseEvent({ ...event, sequence_number: index }));
