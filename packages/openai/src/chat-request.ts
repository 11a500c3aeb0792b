import type { ModelRequest, RequestOptions, ToolDeclaration } from '@millrace/core';
import type { JsonRecord } from '@millrace/wire';
import type {
  ChatCompletionCreateParamsStreaming,
  ChatCompletionFunctionTool,
  ChatCompletionToolChoiceOption,
} from 'openai/resources/chat/completions';
import { chatMessages } from './chat-messages.js';
import type { ReasoningEffort } from './profile.js';
import { strictSchema } from './strict-schema.js';
import { toolSchema } from './tool-schema.js';
import type { Target } from './wire-model.js';

/** What a chat completion may be asked beside what a request says. */
export interface ChatExtras {
  readonly reasoningEffort?: ReasoningEffort | undefined;
  /** Fields that go before all others. */
  readonly body?: JsonRecord | undefined;
}

/** Writes a request for chat completions, as a stream. Throws where a block cannot be sent. */
export const chatRequest = (
  { messages, system, ...options }: ModelRequest,
  target: Target,
  { reasoningEffort, body }: ChatExtras = {},
): ChatCompletionCreateParamsStreaming => {
  const { systemRole = 'system', asksForUsage = true } = target.profile;
  const content = system ?? '';
  return {
    model: target.model,
    messages: [
      ...(content === '' ? [] : [{ role: systemRole, content }]),
      ...chatMessages(messages, target),
    ],
    ...toolFields(options, target),
    ...limitFields(options, target),
    ...outputFields(options),
    ...(reasoningEffort === undefined ? {} : { reasoning_effort: reasoningEffort }),
    ...(asksForUsage ? { stream_options: { include_usage: true } } : {}),
    ...target.profile.body,
    ...body,
    stream: true,
  };
};

const toolFields = ({ tools = [], toolChoice }: RequestOptions, target: Target) => {
  if (tools.length === 0) return {};
  const { takesNamedChoice = true } = target.profile;
  const named = typeof toolChoice === 'object' ? toolChoice.name : undefined;
  const isAlone = named !== undefined && !takesNamedChoice;
  const alone = isAlone ? tools.filter(({ name }) => name === named) : [];
  // A list without tools is refused.
  const offered = alone.length === 0 ? tools : alone;
  const choice = isAlone ? 'required' : toolChoice;
  return {
    tools: offered.map((tool) => declaration(tool, target)),
    ...(choice === undefined ? {} : { tool_choice: choiceOf(choice, target) }),
  };
};

const declaration = (
  { name, description, inputSchema }: ToolDeclaration,
  { profile: { strictTools }, toolName }: Target,
): ChatCompletionFunctionTool => {
  const schema = toolSchema(inputSchema);
  const strict = strictTools === true ? strictSchema(schema) : undefined;
  return {
    type: 'function',
    function: {
      name: toolName(name),
      description,
      parameters: strict ?? schema,
      ...(strict === undefined ? {} : { strict: true }),
    },
  };
};

const choiceOf = (
  toolChoice: NonNullable<RequestOptions['toolChoice']>,
  { toolName }: Target,
): ChatCompletionToolChoiceOption =>
  typeof toolChoice === 'string'
    ? toolChoice
    : { type: 'function', function: { name: toolName(toolChoice.name) } };

const limitFields = (
  { temperature, maxTokens, stopSequences = [] }: RequestOptions,
  { profile: { maxTokensField = 'max_tokens' } }: Target,
) => ({
  ...(temperature === undefined ? {} : { temperature }),
  ...(maxTokens === undefined ? {} : { [maxTokensField]: maxTokens }),
  ...(stopSequences.length === 0 ? {} : { stop: [...stopSequences] }),
});

const outputFields = ({
  outputSchema,
}: RequestOptions): Pick<ChatCompletionCreateParamsStreaming, 'response_format'> => {
  if (outputSchema === undefined) return {};
  const strict = strictSchema(outputSchema);
  return {
    response_format: {
      type: 'json_schema',
      json_schema: {
        name: 'answer',
        schema: strict ?? outputSchema,
        ...(strict === undefined ? {} : { strict: true }),
      },
    },
  };
};
