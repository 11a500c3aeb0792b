import type { JsonSchema, RequestOptions } from '@millrace/core';
import {
  type JsonRecord,
  memoizeByObject,
  rawJson,
  rawJsonList,
  stringifyObject,
  type WireNames,
  type WithRawJson,
} from '@millrace/wire';
import type { ResponseCreateParamsStreaming } from 'openai/resources/responses/responses';
import { fitSchema, fitToolSchema } from './fit-schema.js';
import type { ReasoningEffort } from './profile.js';
import { responsesInput, type ResponsesTarget } from './responses-input.js';
import type { WriteRequest } from './wire-model.js';

/** Options of the Responses API that a request does not have. */
export interface ResponsesExtras {
  readonly reasoningEffort?: ReasoningEffort | undefined;
  readonly reasoningSummary?: 'auto' | 'concise' | 'detailed' | undefined;
  /** Tools that the vendor runs, in its format. */
  readonly builtInTools?: readonly JsonRecord[] | undefined;
  /** Fields that override all others. */
  readonly body?: JsonRecord | undefined;
}

type Fields = WithRawJson<Partial<ResponseCreateParamsStreaming>>;

/**
 * Creates a serializer of streaming requests for the Responses API. Parts that repeat are serialized once. Unless the
 * target sets `store`, encrypted reasoning is requested and sent back. It throws for a block that cannot be sent.
 */
export const responsesRequest = (
  target: ResponsesTarget,
  { body, builtInTools, ...extras }: ResponsesExtras = {},
): WriteRequest => {
  const { profile, model, store } = target;
  const isEncrypted = !store && profile.encryptsReasoning?.test(model) === true;
  const inputOf = responsesInput(target);
  const toolsOf = toolFields(target, builtInTools);
  const outputOf = outputFields();
  return ({ messages, system = '', ...options }, naming) => {
    const { temperature, maxTokens } = options;
    const fields: Fields = {
      model,
      input: rawJsonList([inputOf(messages, naming)]),
      ...(system === '' ? {} : { instructions: system }),
      ...toolsOf(options, naming),
      ...(temperature === undefined ? {} : { temperature }),
      ...(maxTokens === undefined ? {} : { max_output_tokens: maxTokens }),
      ...outputOf(options),
      ...reasoningFields(extras),
      ...(isEncrypted ? { include: ['reasoning.encrypted_content'] } : {}),
      store,
      ...profile.body,
      ...body,
      stream: true,
    };
    return stringifyObject(fields);
  };
};

const toolFields = (
  { profile: { strictTools = false } }: ResponsesTarget,
  builtInTools: readonly JsonRecord[] = [],
) => {
  const parametersOf = memoizeByObject((schema: JsonSchema) => fitToolSchema(schema, strictTools));
  const builtIn = builtInTools.map((tool) => JSON.stringify(tool));
  return ({ tools = [], toolChoice }: RequestOptions, { toolName }: WireNames): Fields => {
    if (tools.length + builtIn.length === 0) return {};
    const declared = tools.map(({ name, description, inputSchema }) => {
      const { schema: parameters, isStrict: strict } = parametersOf(inputSchema);
      // Unlike in chat completions, the default of `strict` is true.
      return stringifyObject({
        type: 'function',
        name: toolName(name),
        description,
        parameters,
        strict,
      });
    });
    const choice =
      typeof toolChoice === 'object'
        ? { type: 'function' as const, name: toolName(toolChoice.name) }
        : toolChoice;
    return {
      tools: rawJsonList([...declared, ...builtIn]),
      ...(choice === undefined ? {} : { tool_choice: choice }),
    };
  };
};

const outputFields = () => {
  const answerOf = memoizeByObject((schema: JsonSchema) => fitSchema(schema, true));
  return ({ outputSchema }: RequestOptions): Fields => {
    if (outputSchema === undefined) return {};
    const { schema, isStrict: strict } = answerOf(outputSchema);
    const format = stringifyObject({ type: 'json_schema', name: 'answer', schema, strict });
    return { text: rawJson(stringifyObject({ format: rawJson(format) })) };
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
