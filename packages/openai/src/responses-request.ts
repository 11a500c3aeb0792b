import type { JsonSchema, ModelRequest, RequestOptions } from 'millrace';
import {
  at,
  type JsonRecord,
  listAt,
  memoizeByObject,
  mergeBody,
  rawJson,
  rawJsonList,
  stringifyObject,
  type WireNames,
  type WithRawJson,
} from '@millrace/wire';
import type { ResponseCreateParamsStreaming } from 'openai/resources/responses/responses';
import { fitSchema, fitToolSchema } from './fit-schema.js';
import { choosesCustom, isCustom } from './custom-tools.js';
import type { ReasoningEffort, Verbosity } from './profile.js';
import { calledWithoutNamespace, responsesInput, type ResponsesTarget } from './responses-input.js';
import { sharedFields } from './shared-fields.js';
import type { WriteRequest } from './wire-model.js';

/** Options of the Responses API that a request does not have. */
export interface ResponsesExtras {
  readonly reasoningEffort?: ReasoningEffort | undefined;
  readonly reasoningSummary?: 'auto' | 'concise' | 'detailed' | undefined;
  /** Tools that the vendor runs, in its format. */
  readonly builtInTools?: readonly JsonRecord[] | undefined;
  readonly verbosity?: Verbosity | undefined;
  readonly serviceTier?: string | undefined;
  readonly parallelToolCalls?: boolean | undefined;
  /** Further fields, merged into those of the request. */
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
  return (request, naming) => {
    const { messages, system = '', ...options } = request;
    const { temperature, maxTokens } = options;
    const fields: Fields = {
      model,
      input: rawJsonList([inputOf(messages, naming)]),
      ...(system === '' ? {} : { instructions: system }),
      ...toolsOf(request, naming),
      ...(temperature === undefined ? {} : { temperature }),
      ...(maxTokens === undefined ? {} : { max_output_tokens: maxTokens }),
      ...outputOf(options, extras.verbosity),
      ...reasoningFields(extras),
      ...sharedFields(extras, options.tools),
      ...(isEncrypted ? { include: ['reasoning.encrypted_content'] } : {}),
      store,
    };
    return stringifyObject({ ...mergeBody(fields, profile.body, body), stream: true });
  };
};

const toolFields = ({ profile }: ResponsesTarget, builtInTools: readonly JsonRecord[] = []) => {
  const { name: vendor, strictTools = false } = profile;
  const parametersOf = memoizeByObject((schema: JsonSchema) => fitToolSchema(schema, strictTools));
  const builtIn = builtInTools.map((tool) => JSON.stringify(tool));
  const withoutSearch = builtIn.filter(
    (_, index) => builtInTools[index]?.['type'] !== 'tool_search',
  );
  const isSearchable = builtInTools.some((it) => [it, ...listAt(it, 'tools')].some(isDeferred));
  return ({ messages, tools = [], toolChoice }: ModelRequest, { toolName }: WireNames): Fields => {
    if (tools.length + builtIn.length === 0) return {};
    const deferred = tools.filter(({ vendorOptions }) => isDeferred(vendorOptions?.[vendor]));
    const called = deferred.length > 0 ? calledWithoutNamespace(messages, profile) : undefined;
    // The API rejects a search that has nothing to find.
    const isSearchEmpty = called !== undefined && deferred.every(({ name }) => called.has(name));
    const declared = tools.map(({ name, description, inputSchema, vendorOptions }) => {
      const given = vendorOptions?.[vendor] ?? {};
      // The API looks for such a call among the functions that are not deferred, and rejects the request without.
      const own = called?.has(name) === true ? { ...given, defer_loading: false } : given;
      if (isCustom(own)) return JSON.stringify({ name: toolName(name), description, ...own });
      const { schema: parameters, isStrict: strict } = parametersOf(inputSchema);
      // Unlike in chat completions, the default of `strict` is true.
      return stringifyObject({
        type: 'function',
        name: toolName(name),
        description,
        parameters,
        strict,
        ...own,
      });
    });
    const type = choosesCustom(toolChoice, tools, vendor)
      ? ({ type: 'custom' } as const)
      : ({ type: 'function' } as const);
    const choice =
      typeof toolChoice === 'object' ? { ...type, name: toolName(toolChoice.name) } : toolChoice;
    return {
      tools: rawJsonList([
        ...declared,
        ...(isSearchEmpty && !isSearchable ? withoutSearch : builtIn),
      ]),
      ...(choice === undefined ? {} : { tool_choice: choice }),
    };
  };
};

const isDeferred = (own: unknown): boolean => at(own, 'defer_loading') === true;

const outputFields = () => {
  const answerOf = memoizeByObject((schema: JsonSchema) => fitSchema(schema, true));
  return ({ outputSchema }: RequestOptions, verbosity: Verbosity | undefined): Fields => {
    const length = verbosity === undefined ? {} : { verbosity };
    if (outputSchema === undefined) return verbosity === undefined ? {} : { text: length };
    const { schema, isStrict: strict } = answerOf(outputSchema);
    const format = stringifyObject({ type: 'json_schema', name: 'answer', schema, strict });
    return { text: rawJson(stringifyObject({ format: rawJson(format), ...length })) };
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
