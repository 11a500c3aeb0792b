import type { ModelRequest, RequestOptions, ToolDeclaration } from '@millrace/core';
import type { JsonRecord } from '@millrace/wire';
import type {
  FunctionTool,
  ResponseCreateParamsStreaming,
} from 'openai/resources/responses/responses';
import type { ReasoningEffort } from './profile.js';
import { responsesInput, type ResponsesTarget } from './responses-input.js';
import { strictSchema } from './strict-schema.js';
import { toolSchema } from './tool-schema.js';

/** What the Responses API may be asked beside what a request says. */
export interface ResponsesExtras {
  readonly reasoningEffort?: ReasoningEffort | undefined;
  readonly reasoningSummary?: 'auto' | 'concise' | 'detailed' | undefined;
  /** Tools that run at the vendor, as it declares them. */
  readonly builtInTools?: readonly JsonRecord[] | undefined;
  /** Fields that go before all others. */
  readonly body?: JsonRecord | undefined;
}

/**
 * Writes a request for responses, as a stream. Nothing is stored unless the target says so: the reasoning comes
 * encrypted, and is sent back. Throws where a block cannot be sent.
 */
export const responsesRequest = (
  { messages, system = '', ...options }: ModelRequest,
  target: ResponsesTarget,
  { body, ...extras }: ResponsesExtras = {},
): ResponseCreateParamsStreaming => {
  const { profile, model, store } = target;
  const isEncrypted = !store && profile.encryptsReasoning?.test(model) === true;
  const { temperature, maxTokens } = options;
  return {
    model,
    input: responsesInput(messages, target),
    ...(system === '' ? {} : { instructions: system }),
    ...toolFields(options, target, extras),
    ...(temperature === undefined ? {} : { temperature }),
    ...(maxTokens === undefined ? {} : { max_output_tokens: maxTokens }),
    ...outputFields(options),
    ...reasoningFields(extras),
    ...(isEncrypted ? { include: ['reasoning.encrypted_content'] } : {}),
    store,
    ...profile.body,
    ...body,
    stream: true,
  };
};

const toolFields = (
  { tools = [], toolChoice }: RequestOptions,
  target: ResponsesTarget,
  { builtInTools = [] }: ResponsesExtras,
): JsonRecord =>
  tools.length + builtInTools.length === 0
    ? {}
    : {
        tools: [...tools.map((tool) => declaration(tool, target)), ...builtInTools],
        ...(toolChoice === undefined
          ? {}
          : {
              tool_choice:
                typeof toolChoice === 'string'
                  ? toolChoice
                  : { type: 'function', name: target.toolName(toolChoice.name) },
            }),
      };

/** Unlike in chat completions, a tool that says nothing of it is strict. */
const declaration = (
  { name, description, inputSchema }: ToolDeclaration,
  { profile: { strictTools }, toolName }: ResponsesTarget,
): FunctionTool => {
  const schema = toolSchema(inputSchema);
  const strict = strictTools === true ? strictSchema(schema) : undefined;
  return {
    type: 'function',
    name: toolName(name),
    description,
    parameters: { ...(strict ?? schema) },
    strict: strict !== undefined,
  };
};

const outputFields = ({
  outputSchema,
}: RequestOptions): Pick<ResponseCreateParamsStreaming, 'text'> => {
  if (outputSchema === undefined) return {};
  const strict = strictSchema(outputSchema);
  const schema = { ...(strict ?? outputSchema) };
  return {
    text: { format: { type: 'json_schema', name: 'answer', schema, strict: strict !== undefined } },
  };
};

const reasoningFields = ({
  reasoningEffort: effort,
  reasoningSummary: summary,
}: ResponsesExtras): Pick<ResponseCreateParamsStreaming, 'reasoning'> =>
  effort === undefined && summary === undefined
    ? {}
    : {
        reasoning: {
          ...(effort === undefined ? {} : { effort }),
          ...(summary === undefined ? {} : { summary }),
        },
      };
