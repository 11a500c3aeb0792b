import type { Model, ModelRequest } from 'millrace';
import {
  type Access,
  answerToolIf,
  checkModelCall,
  listAt,
  optionHint,
  textAt,
  toolNames,
  vendorModel,
  type VendorSpec,
  toWireId,
} from '@millrace/wire';
import { defer } from 'rxjs';
import { accessOf, type MessagesAccess } from './access.js';
import type { CacheTime } from './cache-marks.js';
import { createRequests } from './client.js';
import { fitRequest } from './fit-request.js';
import { createMessagesReader } from './messages-events.js';
import { messagesRequest } from './messages-request.js';
import { nativeSchema } from './native-schema.js';
import { type AnthropicOptions, optionRules } from './options.js';
import { isThinkingEnabled, thinkingConfig } from './thinking.js';

/**
 * Creates a model of Anthropic, over its Messages API, and starts to load the SDK.
 *
 * Throws a `config` error for an unknown option. Its streams error with a `MillraceError` without secrets, and with
 * `config` if there is no key; failed requests are retried as `retry` configures. The Messages API only supports `temperature` with
 * the header `anthropic-version: 2023-06-01`.
 */
export const anthropic = (model: string, options: AnthropicOptions = {}): Model => {
  checkModelCall({
    vendor: 'Anthropic',
    example: 'claude-sonnet-4-5',
    model,
    options,
    rules: optionRules,
    hint: optionHint,
  });
  const bare = vendorModel(specOf(model, options, accessOf(options)), options);
  const isThinking = isThinkingEnabled(
    model,
    options.body?.['thinking'] ?? thinkingConfig(options.thinking),
  );
  const fitting: Model = {
    ...bare,
    stream$: (request, context) =>
      defer(() => {
        const fitted = fitRequest(request, isThinking);
        fitted.dropped.forEach((what) => {
          const message = `The model '${model}' does not support ${what}: it was dropped from the request.`;
          context.report({ type: 'warning', message });
        });
        return bare.stream$(fitted.request, context);
      }),
  };
  return withStructuredOutput(fitting, isThinking);
};

/**
 * Adds a tool for the structured answer if the API cannot enforce the schema. While the model thinks, the tool is not
 * forced, because the API rejects that; no warning is reported, because the user did not set that choice.
 */
const withStructuredOutput = (model: Model, isThinking: boolean): Model => {
  const toolUser: Model = isThinking
    ? {
        ...model,
        unsupported: [...(model.unsupported ?? []), 'toolChoice'],
        stream$: (request, context) => model.stream$(allowAnswerTool(request), context),
      }
    : model;
  return answerToolIf(model, (schema) => nativeSchema(schema) === undefined, toolUser);
};

/** The choice `none` would also forbid the tool for the answer. */
const allowAnswerTool = ({ toolChoice, ...request }: ModelRequest): ModelRequest =>
  toolChoice === undefined || toolChoice === 'none' ? request : { ...request, toolChoice };

const specOf = (model: string, options: AnthropicOptions, access: MessagesAccess): VendorSpec => {
  const { cache, builtInTools = [] } = options;
  const requests = createRequests(access);
  const write = messagesRequest({ ...options, model, cache: toCacheTime(cache ?? true) });
  const builtIn = [...builtInTools, ...listAt(options.body, 'tools')].map((tool) =>
    textAt(tool, 'name'),
  );
  return {
    name: model,
    ...(takesTemperature(access) ? {} : { unsupported: ['temperature'] }),
    exchange: (request, { scheduler }) => {
      const own = (request.tools ?? []).map(({ name }) => name);
      const names = toolNames(own, builtIn);
      const naming = { toolName: (name: string) => names.toWire(name), toolId: toWireId };
      const body = write(request, naming, scheduler.now());
      return {
        vendor: access.vendor,
        ...requests(body),
        ...createMessagesReader((name) => names.fromWire(name)),
      };
    },
  };
};

const toCacheTime = (cache: boolean | CacheTime): CacheTime | undefined => {
  if (cache === false) return undefined;
  return cache === true ? '5m' : cache;
};

/** The API rejects it from version 2026-10-21 on, which the SDK requests. */
const takesTemperature = ({ headers: { 'anthropic-version': version } }: Access): boolean =>
  typeof version === 'string' && version < '2026-10-21';
