import type { WholeAnswer } from './answer.js';

type Json = Readonly<Record<string, unknown>>;

/** An event without its place in the sequence. */
export type ItemEvent = Json & { readonly type: string };

/** One item of a response's output: as it is in the end, and the events between its start and its end. */
export interface OutputItem {
  readonly started: Json;
  readonly done: Json;
  readonly events: readonly ItemEvent[];
}

/** The items of an answer, in their order. */
export const outputItems = (answer: WholeAnswer): readonly OutputItem[] => {
  const items: OutputItem[] = [];
  if (answer.thinking.length > 0) items.push(reasoning(answer.thinking, items.length));
  const { text, refusal } = answer;
  if (text.length > 0) items.push(message('output_text', text, answer, items.length));
  if (refusal.length > 0) items.push(message('refusal', refusal, answer, items.length));
  for (const call of answer.toolCalls) items.push(functionCall(call, answer, items.length));
  return items;
};

const statusOf = ({ finish }: WholeAnswer): string =>
  finish === 'length' || finish === 'filtered' ? 'incomplete' : 'completed';

const reasoning = (deltas: readonly string[], output_index: number): OutputItem => {
  const id = `rs_0fa01t${output_index}`;
  const at = { item_id: id, output_index, summary_index: 0 };
  const summary = { type: 'summary_text', text: deltas.join('') };
  const item = { id, type: 'reasoning', encrypted_content: 'gAAAAABFault' };
  return {
    started: { ...item, summary: [] },
    done: { ...item, summary: [summary] },
    events: [
      { type: 'response.reasoning_summary_part.added', ...at, part: { ...summary, text: '' } },
      ...deltas.map((delta) => ({
        type: 'response.reasoning_summary_text.delta',
        ...at,
        delta,
        obfuscation: 'Qz81',
      })),
      { type: 'response.reasoning_summary_text.done', ...at, text: summary.text },
      { type: 'response.reasoning_summary_part.done', ...at, part: summary },
    ],
  };
};

/** How a part of a message is written: its events, and the field that holds what it says. */
const kinds = {
  output_text: {
    event: 'response.output_text',
    field: 'text',
    part: { type: 'output_text', annotations: [], logprobs: [] },
    extra: { logprobs: [] },
  },
  refusal: { event: 'response.refusal', field: 'refusal', part: { type: 'refusal' }, extra: {} },
} as const;

const message = (
  kind: keyof typeof kinds,
  deltas: readonly string[],
  answer: WholeAnswer,
  output_index: number,
): OutputItem => {
  const { event, field, part, extra } = kinds[kind];
  const id = `msg_0fa01t${output_index}`;
  const at = { item_id: id, output_index, content_index: 0 };
  const whole = { ...part, [field]: deltas.join('') };
  const item = { id, type: 'message', role: 'assistant' };
  return {
    started: { ...item, status: 'in_progress', content: [] },
    done: { ...item, status: statusOf(answer), content: [whole] },
    events: [
      { type: 'response.content_part.added', ...at, part: { ...part, [field]: '' } },
      ...deltas.map((delta) => ({
        type: `${event}.delta`,
        ...at,
        ...extra,
        delta,
        obfuscation: 'Qz81',
      })),
      { type: `${event}.done`, ...at, ...extra, [field]: deltas.join('') },
      { type: 'response.content_part.done', ...at, part: whole },
    ],
  };
};

const functionCall = (
  { id: call_id, name, arguments: deltas }: WholeAnswer['toolCalls'][number],
  answer: WholeAnswer,
  output_index: number,
): OutputItem => {
  const id = `fc_0fa01t${output_index}`;
  const at = { item_id: id, output_index };
  const item = { id, type: 'function_call', call_id, name };
  const whole = deltas.join('');
  return {
    started: { ...item, status: 'in_progress', arguments: '' },
    done: { ...item, status: statusOf(answer), arguments: whole },
    events: [
      ...deltas.map((delta) => ({
        type: 'response.function_call_arguments.delta',
        ...at,
        delta,
        obfuscation: 'Qz81',
      })),
      { type: 'response.function_call_arguments.done', ...at, name, arguments: whole },
    ],
  };
};
