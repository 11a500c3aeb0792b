import type { Model, ModelRequest } from '@millrace/core';
import { around } from '@millrace/core/adapter';
import {
  type Access,
  answerToolIf,
  checkModelCall,
  textAt,
  toolNames,
  vendorModel,
  type VendorSpec,
  withKey,
} from '@millrace/wire';
import { defer } from 'rxjs';
import { accessOf, type MessagesAccess } from './access.js';
import type { CacheTime } from './cache-marks.js';
import { createSend } from './client.js';
import { fitRequest } from './fit-request.js';
import { createMessagesReader } from './messages-events.js';
import { messagesRequest } from './messages-request.js';
import { nativeSchema } from './native-schema.js';
import { type AnthropicOptions, optionRules } from './options.js';
import { isThinkingEnabled, thinkingConfig } from './thinking.js';
import { toWireId } from './tool-use-id.js';

/**
 * Makes a model of Anthropic, over its Messages API. Nothing is sent before a request, and the vendor's SDK is loaded
 * with the first one.
 *
 * Throws a `config` error for an option that there is not, and where no key is found. Its streams error with a
 * `MillraceError` that holds no key; a request that failed is sent again as `retry` says. The Messages API takes no
 * temperature, unless the header `anthropic-version` asks for the version of 2023-06-01.
 */
export const anthropic = (model: string, options: AnthropicOptions = {}): Model => {
  checkModelCall({
    vendor: 'Anthropic',
    example: 'claude-sonnet-4-5',
    model,
    options,
    rules: optionRules,
  });
  const bare = vendorModel(specOf(model, options, accessOf(options)), options);
  const isThinking = isThinkingEnabled(
    model,
    options.body?.['thinking'] ?? thinkingConfig(options.thinking),
  );
  const fitting = around(bare, (request, context) =>
    defer(() => {
      const fitted = fitRequest(request, isThinking);
      fitted.dropped.forEach((what) => {
        const message = `The model '${model}' cannot take ${what}: it was left out of the request.`;
        context.report({ type: 'warning', message });
      });
      return bare.stream$(fitted.request, context);
    }),
  );
  return withStructuredOutput(fitting, isThinking);
};

/**
 * Lets a model answer by a tool where the API cannot hold the answer to a schema. One that thinks is not made to use
 * it: the API refuses that, and nobody has asked for it.
 */
const withStructuredOutput = (model: Model, isThinking: boolean): Model => {
  const forbidden = { unsupported: [...(model.unsupported ?? []), 'toolChoice' as const] };
  const toolUser = isThinking
    ? around(
        model,
        (request, context) => model.stream$(allowAnswerTool(request), context),
        forbidden,
      )
    : model;
  return answerToolIf(model, (schema) => nativeSchema(schema) === undefined, toolUser);
};

/** A choice of no tool would forbid the one to answer with, too. */
const allowAnswerTool = ({ toolChoice, ...request }: ModelRequest): ModelRequest =>
  toolChoice === undefined || toolChoice === 'none' ? request : { ...request, toolChoice };

const specOf = (model: string, options: AnthropicOptions, access: MessagesAccess): VendorSpec => {
  const { cache, builtInTools = [] } = options;
  const send = createSend(access, options);
  const write = messagesRequest({ ...options, model, cache: toCacheTime(cache ?? true) });
  const builtIn = builtInTools.map((tool) => textAt(tool, 'name'));
  return {
    name: model,
    ...(takesTemperature(access) ? {} : { unsupported: ['temperature'] }),
    exchange: (request) => {
      const own = (request.tools ?? []).map(({ name }) => name);
      const names = toolNames(own, builtIn);
      const body = write(request, { toolName: (name) => names.toWire(name), toolId: toWireId });
      return {
        vendor: access.vendor,
        ...withKey(access, (sending) => send(body, sending)),
        ...createMessagesReader((name) => names.fromWire(name)),
      };
    },
  };
};

const toCacheTime = (cache: boolean | CacheTime): CacheTime | undefined => {
  if (cache === false) return undefined;
  return cache === true ? '5m' : cache;
};

/** The version of 2026-10-21, which the SDK asks for, refuses it. */
const takesTemperature = ({ headers: { 'anthropic-version': version } }: Access): boolean =>
  typeof version === 'string' && version < '2026-10-21';
