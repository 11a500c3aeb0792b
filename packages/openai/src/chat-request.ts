import type { JsonSchema, RequestOptions, ToolDeclaration } from 'millrace';
import {
  type JsonRecord,
  memoizeByObject,
  memoizeLast,
  mergeBody,
  rawJson,
  rawJsonList,
  stringifyObject,
  type WireNames,
  type WithRawJson,
} from '@millrace/wire';
import type {
  ChatCompletionCreateParamsStreaming,
  ChatCompletionFunctionTool,
  ChatCompletionToolChoiceOption,
} from 'openai/resources/chat/completions';
import { chatMessages } from './chat-messages.js';
import { choosesCustom, isCustom } from './custom-tools.js';
import { fitSchema, type FittedSchema, fitToolSchema } from './fit-schema.js';
import type { ReasoningEffort, Verbosity } from './profile.js';
import { sharedFields } from './shared-fields.js';
import type { Target, WriteRequest } from './wire-model.js';

/** Options of a chat completion that a request does not have. */
export interface ChatExtras {
  readonly reasoningEffort?: ReasoningEffort | undefined;
  readonly verbosity?: Verbosity | undefined;
  readonly serviceTier?: string | undefined;
  readonly parallelToolCalls?: boolean | undefined;
  /** Further fields, merged into those of the request. */
  readonly body?: JsonRecord | undefined;
}

type Fields = WithRawJson<Partial<ChatCompletionCreateParamsStreaming>>;

/**
 * Creates a serializer of streaming requests for chat completions. Parts that repeat are serialized once. It throws for
 * a block that cannot be sent.
 */
export const chatRequest = (
  target: Target,
  { reasoningEffort, body, ...extras }: ChatExtras = {},
): WriteRequest => {
  const { systemRole = 'system', asksForUsage = true } = target.profile;
  const messagesOf = chatMessages(target);
  const systemOf = memoizeLast((content) =>
    content === '' ? '' : JSON.stringify({ role: systemRole, content }),
  );
  const toolsOf = toolFields(target);
  const outputOf = outputFields();
  return ({ messages, system = '', ...options }, naming) => {
    const fields: Fields = {
      model: target.model,
      messages: rawJsonList([systemOf(system), messagesOf(messages, naming)]),
      ...toolsOf(options, naming),
      ...limitFields(options, target),
      ...outputOf(options),
      ...(reasoningEffort === undefined ? {} : { reasoning_effort: reasoningEffort }),
      ...(extras.verbosity === undefined ? {} : { verbosity: extras.verbosity }),
      ...sharedFields(extras, options.tools),
      ...(asksForUsage ? { stream_options: { include_usage: true } } : {}),
    };
    return stringifyObject({ ...mergeBody(fields, target.profile.body, body), stream: true });
  };
};

const toolFields = ({ profile }: Target) => {
  const { name, strictTools = false, takesNamedChoice = true } = profile;
  const parametersOf = memoizeByObject((schema: JsonSchema) => fitToolSchema(schema, strictTools));
  return ({ tools = [], toolChoice }: RequestOptions, naming: WireNames): Fields => {
    if (tools.length === 0) return {};
    const named = typeof toolChoice === 'object' ? toolChoice.name : undefined;
    const isAlone = named !== undefined && !takesNamedChoice;
    const alone = isAlone ? tools.filter(({ name: toolName }) => toolName === named) : [];
    // An empty list of tools is rejected.
    const offered = alone.length === 0 ? tools : alone;
    const choice = isAlone ? 'required' : toolChoice;
    return {
      tools: rawJsonList(
        offered.map((tool) => declaration(tool, parametersOf(tool.inputSchema), naming, name)),
      ),
      ...(choice === undefined
        ? {}
        : { tool_choice: choiceOf(choice, naming, choosesCustom(choice, offered, name)) }),
    };
  };
};

const declaration = (
  { name, description, vendorOptions }: ToolDeclaration,
  { schema, isStrict }: FittedSchema,
  { toolName }: WireNames,
  vendor: string,
): string => {
  const own = vendorOptions?.[vendor] ?? {};
  if (isCustom(own)) {
    const { type, ...rest } = own;
    return JSON.stringify({ type, custom: { name: toolName(name), description, ...rest } });
  }
  const called: WithRawJson<ChatCompletionFunctionTool['function']> = {
    name: toolName(name),
    description,
    parameters: schema,
    ...(isStrict ? { strict: true } : {}),
    ...own,
  };
  return stringifyObject({ type: 'function', function: rawJson(stringifyObject(called)) });
};

const choiceOf = (
  toolChoice: NonNullable<RequestOptions['toolChoice']>,
  { toolName }: WireNames,
  isCustomTool: boolean,
): ChatCompletionToolChoiceOption => {
  if (typeof toolChoice === 'string') return toolChoice;
  const called = { name: toolName(toolChoice.name) };
  return isCustomTool ? { type: 'custom', custom: called } : { type: 'function', function: called };
};

const limitFields = (
  { temperature, maxTokens, stopSequences = [] }: RequestOptions,
  { profile: { maxTokensField = 'max_tokens' } }: Target,
): Fields => ({
  ...(temperature === undefined ? {} : { temperature }),
  ...(maxTokens === undefined ? {} : { [maxTokensField]: maxTokens }),
  ...(stopSequences.length === 0 ? {} : { stop: [...stopSequences] }),
});

const outputFields = () => {
  const answerOf = memoizeByObject((schema: JsonSchema) => fitSchema(schema, true));
  return ({ outputSchema }: RequestOptions): Fields => {
    if (outputSchema === undefined) return {};
    const { schema, isStrict } = answerOf(outputSchema);
    const format = { name: 'answer', schema, ...(isStrict ? { strict: true } : {}) };
    const written = { type: 'json_schema', json_schema: rawJson(stringifyObject(format)) };
    return { response_format: rawJson(stringifyObject(written)) };
  };
};
