import {
  type Answer,
  type AnsweredFinish,
  type AnsweredUsage,
  type WholeAnswer,
  wholeAnswer,
} from './answer.js';
import { type ItemEvent, outputItems } from './responses-items.js';
import { sse } from './sse.js';

type Json = Readonly<Record<string, unknown>>;

const defaultModel = 'gpt-5-2025-08-07';

const incompleteReasons: Partial<Readonly<Record<AnsweredFinish, string>>> = {
  length: 'max_output_tokens',
  filtered: 'content_filter',
};

/** The `usage` of a response. */
export const responsesUsage = ({ input, cached, output }: AnsweredUsage): Json => ({
  input_tokens: input,
  input_tokens_details: { cached_tokens: cached },
  output_tokens: output,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: input + output,
});

/** A response's object, as it is while nothing has come yet. */
export const responseObject = (fields: Json = {}, model = defaultModel): Json => ({
  id: 'resp_0fa01t5e4ve4',
  object: 'response',
  created_at: 1_764_000_000,
  status: 'in_progress',
  background: false,
  error: null,
  incomplete_details: null,
  instructions: null,
  max_output_tokens: null,
  metadata: {},
  model,
  output: [],
  parallel_tool_calls: true,
  previous_response_id: null,
  reasoning: { effort: 'medium', summary: null },
  service_tier: 'default',
  store: false,
  temperature: 1,
  text: { format: { type: 'text' }, verbosity: 'medium' },
  tool_choice: 'auto',
  tools: [],
  top_p: 1,
  truncation: 'disabled',
  usage: null,
  user: null,
  ...fields,
});

/** Numbers events, and writes them: the event's name is the type of its data. */
export const responsesEvents = (events: readonly ItemEvent[]): readonly string[] =>
  events.map((event, index) => sse({ ...event, sequence_number: index }, event.type));

const ended = (whole: WholeAnswer): Json => {
  const reason = incompleteReasons[whole.finish];
  return responseObject(
    {
      status: reason === undefined ? 'completed' : 'incomplete',
      incomplete_details: reason === undefined ? null : { reason },
      output: outputItems(whole).map(({ done }) => done),
      usage: responsesUsage(whole.usage),
    },
    whole.model,
  );
};

/**
 * A response as a stream: it is created, each item of its output is added, filled and done, and it is completed or
 * left incomplete. https://platform.openai.com/docs/api-reference/responses-streaming
 */
export const responsesStream = (answer: Answer): readonly string[] => {
  const whole = wholeAnswer(answer, 'call_Fa0', defaultModel);
  const begun = responseObject({}, whole.model);
  const response = ended(whole);
  return responsesEvents([
    { type: 'response.created', response: begun },
    { type: 'response.in_progress', response: begun },
    ...outputItems(whole).flatMap(({ started, done, events }, output_index) => [
      { type: 'response.output_item.added', output_index, item: started },
      ...events,
      { type: 'response.output_item.done', output_index, item: done },
    ]),
    { type: `response.${String(response['status'])}`, response },
  ]);
};

/** The same response as one JSON body. https://platform.openai.com/docs/api-reference/responses/object */
export const responsesBody = (answer: Answer): Json =>
  ended(wholeAnswer(answer, 'call_Fa0', defaultModel));
