import {
  MillraceError,
  type Model,
  type ModelChunk,
  type ModelContext,
  type ModelRequest,
} from 'millrace';
import { checkOptions, isRecord, withoutSecrets } from 'millrace/values';
import {
  answerToolIf,
  at,
  type Caps,
  capsOf,
  createCapCounter,
  dependable,
  redactChunk,
  redactError,
  redactorOf,
} from '@millrace/wire';
import {
  catchError,
  concat,
  concatMap,
  defer,
  EMPTY,
  map,
  type Observable,
  tap,
  throwError,
} from 'rxjs';
import { namesOf, toCallOptions } from './call-options.js';
import { type AiSdkModelOptions, optionRules, settingRules } from './options.js';
import { parts$, type Start } from './parts-stream.js';
import { toProviderError } from './provider-error.js';
import type { AiSdkLanguageModel } from './provider-types.js';
import { createPartReader, failureIn } from './read-parts.js';
import { secretsOf } from './secrets.js';

/**
 * Makes a model of the AI SDK's provider interface, such as `google('gemini-2.5-flash')`, a model of Millrace.
 *
 * Throws a `config` error if it is no such model, and for an unknown option. Its streams are cold, pull the provider's stream only
 * while demand is open, and cancel it when unsubscribed. They error with a `MillraceError` without secrets; failed requests
 * are retried as `retry` configures.
 *
 * @example
 * ```ts
 * import { bedrock } from '@ai-sdk/amazon-bedrock';
 * import { aiSdkModel } from '@millrace/ai-sdk';
 * import { createAgent } from 'millrace';
 *
 * const agent = createAgent({ model: aiSdkModel(bedrock('anthropic.claude-sonnet-4-5-20250929-v1:0')) });
 * ```
 */
export const aiSdkModel = (model: AiSdkLanguageModel, options: AiSdkModelOptions = {}): Model => {
  checkLanguageModel(model);
  const name = model.modelId;
  checkOptions(`The model '${name}'`, options, optionRules);
  checkOptions(`The 'settings' of the model '${name}'`, options.settings ?? {}, settingRules);
  const own = { ...options, secrets: secretsOf(options.secrets), caps: capsOf(options.caps) };
  const once: Model = {
    name,
    stream$: (request, context) => defer(() => answer$(model, own, request, context)),
  };
  const whole = dependable(once, options);
  const { structuredOutput } = options;
  return answerToolIf(whole, (_, { tools = [] }) =>
    structuredOutput === undefined ? tools.length > 0 : structuredOutput === 'tool',
  );
};

const checkLanguageModel = (model: unknown): void => {
  const version = isRecord(model) ? model['specificationVersion'] : undefined;
  if ((version === 'v3' || version === 'v4') && isRecord(model)) {
    const { provider, modelId, doStream } = model;
    const isNamed = [provider, modelId].every((it) => typeof it === 'string' && it !== '');
    if (isNamed && typeof doStream === 'function') return;
  }
  const given = typeof version === 'string' ? `, not of ${version}: update its package` : '';
  throw new MillraceError(
    'config',
    `aiSdkModel() takes a language model of the AI SDK's provider interface v3 or v4${given}. Example: aiSdkModel(google('gemini-2.5-flash')).`,
  );
};

interface Prepared extends AiSdkModelOptions {
  readonly secrets: readonly string[];
  readonly caps: Caps;
}

/** One request and its answer. */
const answer$ = (
  model: AiSdkLanguageModel,
  options: Prepared,
  request: ModelRequest,
  context: ModelContext,
): Observable<ModelChunk> => {
  const vendor = model.provider;
  const redactor = redactorOf(options.secrets);
  const clean = (text: string): string => withoutSecrets(redactor.error(text));
  const names = namesOf(request, options);
  const reader = createPartReader({
    vendor,
    toolNameOf: (name) => names.fromWire(name),
    hasTool: (name) => request.tools?.some((it) => it.name === name) === true,
    report: context.report,
    ...(context.working === undefined ? {} : { working: context.working }),
  });
  const count = createCapCounter(vendor, options.caps);
  const start: Start = (signal) =>
    Promise.resolve(model.supportedUrls)
      .then((supportedUrls) => {
        const { specificationVersion } = model;
        const taker = { provider: vendor, specificationVersion, supportedUrls };
        const callOptions = toCallOptions(request, taker, names, options);
        return model.doStream({ ...callOptions, abortSignal: signal });
      })
      .then((result) => {
        reader.open(at(result, 'response', 'headers'));
        return result;
      });
  const isFailure = (part: unknown): boolean => failureIn(vendor, part) !== undefined;
  return concat(
    parts$(start, context, isFailure).pipe(
      // A connection that is lost after the finish, or after a failure that the provider reports, changes nothing.
      catchError((error: unknown) => {
        reader.fail(error);
        return EMPTY;
      }),
      concatMap((part) => reader.read(part)),
    ),
    defer(() => reader.end()),
  ).pipe(
    tap((chunk) => count(chunk)),
    map((chunk) => redactChunk(chunk, redactor.answer)),
    catchError((thrown: unknown) => {
      const now = context.scheduler.now();
      const error = toProviderError(thrown, { vendor, clean, now });
      return throwError(() => redactError(error, { answer: redactor.answer, error: clean }));
    }),
  );
};
