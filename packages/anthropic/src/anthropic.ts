import { answerTool, type Model, type ModelRequest } from '@millrace/core';
import { defaultCaps, toolNames, vendorModel, type VendorSpec } from '@millrace/wire';
import { defer } from 'rxjs';
import { type Access, findAccess, secretsIn } from './access.js';
import type { CacheTime } from './cache-marks.js';
import { createSend } from './client.js';
import { fitRequest } from './fit-request.js';
import { createMessagesReader } from './messages-events.js';
import { toMessagesBody } from './messages-request.js';
import { nativeSchema } from './native-schema.js';
import { type AnthropicOptions, checkCall } from './options.js';
import { thinkingConfig } from './thinking.js';

/**
 * Makes a model of Anthropic, over its Messages API. Nothing is sent before a request, and the vendor's SDK is loaded
 * with the first one.
 *
 * Throws a `config` error for an option that there is not, and where no key is found. Its streams error with a
 * `MillraceError` that holds no key; a request that failed is sent again as `retry` says. The Messages API takes no
 * temperature, unless the header `anthropic-version` asks for the version of 2023-06-01.
 */
export const anthropic = (model: string, options: AnthropicOptions = {}): Model => {
  checkCall(model, options);
  const bare = vendorModel(specOf(model, options, findAccess(options)), options);
  const thinking = options.body?.['thinking'] ?? thinkingConfig(options.thinking);
  const fitting: Model = {
    ...bare,
    stream$: (request, context) =>
      defer(() => {
        const fitted = fitRequest(request, thinking);
        fitted.dropped.forEach((what) => {
          const message = `The model '${model}' cannot take ${what}: it was left out of the request.`;
          context.report({ type: 'warning', message });
        });
        return bare.stream$(fitted.request, context);
      }),
  };
  const answering = answerTool(fitting);
  return {
    ...fitting,
    stream$: (request, context) =>
      (needsAnswerTool(request) ? answering : fitting).stream$(request, context),
  };
};

/** Not every schema is one that the API can hold an answer to. */
const needsAnswerTool = ({ outputSchema }: ModelRequest): boolean =>
  outputSchema !== undefined && nativeSchema(outputSchema) === undefined;

const specOf = (model: string, options: AnthropicOptions, access: Access): VendorSpec => {
  const { caps, fetch, cache = true, maxTokens = 32_000, ...others } = options;
  const secrets = [...secretsIn(access)];
  const errorBytes = caps?.errorBytes ?? defaultCaps.errorBytes;
  const send = createSend({
    ...access,
    errorBytes,
    fetch,
    onKey: (key) => {
      if (!secrets.includes(key)) secrets.push(key);
    },
  });
  const settings = { ...others, model, maxTokens, cache: cacheTime(cache) };
  return {
    name: model,
    ...(takesTemperature(access) ? {} : { unsupported: ['temperature'] }),
    exchange: (request) => {
      const names = toolNames((request.tools ?? []).map(({ name }) => name));
      const body = toMessagesBody(settings, request, names);
      const { read, readWhole } = createMessagesReader((name) => names.fromWire(name));
      return {
        vendor: 'Anthropic',
        secrets,
        send: (signal) => send(body, signal),
        read: ({ data }) => read(data),
        readWhole,
      };
    },
  };
};

const cacheTime = (cache: boolean | CacheTime): CacheTime | undefined => {
  if (cache === false) return undefined;
  return cache === true ? '5m' : cache;
};

/** The version of 2026-10-21, which the SDK asks for, refuses it. */
const takesTemperature = ({ headers }: Access): boolean =>
  Object.entries(headers).some(
    ([name, value]) => name.toLowerCase() === 'anthropic-version' && value < '2026-10-21',
  );
