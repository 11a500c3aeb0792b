import { catchError, concat, defer, EMPTY, map, tap } from 'rxjs';
import type { CallInfo } from '../call-info.js';
import { isMillraceError, MillraceError, misuse } from '../errors.js';
import type { BeforeModel } from '../events.js';
import { type Interceptor, onCall, prepare } from '../interceptor.js';
import type { Message } from '../message.js';
import type { Model, ModelContext } from '../model.js';
import { around, checkModel } from '../models/ready.js';
import { checkOptions, having, type Rule, wholeNumber } from '../options.js';
import { taskOf } from '../prompt/assemble.js';
import { updatedUsage } from '../draft.js';
import { noUsage, type Usage } from '../usage.js';
import { verdict } from '../verdict.js';
import { countMessages, countRequest, weighRequest } from './count-request.js';
import { fitMessages } from './fit-messages.js';
import { createTokenCounter, plainCounter, type TokenCounter } from './token-counter.js';
import { fitAt } from './with-eviction.js';

/** What requests have to fit into. */
export interface FitContextOptions {
  /** Tokens that the model can take in all, those of its answer among them. */
  readonly contextWindow: number;
  /** Tokens that are kept free for the answer. Where the request says `maxTokens`, at least these. Default: 4,096. */
  readonly reserve?: number;
  /** Counts tokens. Default: one of its own that `createTokenCounter` makes, which calibrates itself. */
  readonly counter?: TokenCounter;
}

/**
 * Makes every request of an agent fit into the context window of its model: `use: [fitContext({ contextWindow: 128_000 })]`. Of the
 * request only, it leaves out what `fitMessages` does, in steps of a tenth of the window: memory keeps all. It comes behind all other
 * interceptors, and its counter learns from the usage that the model reports. Where what has to stay is too long, it errors with `contextTooLong`.
 */
export const fitContext = (options: FitContextOptions): readonly Interceptor[] => {
  checkOptions('fitContext()', options, rules, ['contextWindow']);
  const { contextWindow, reserve = 4_096, counter = createTokenCounter() } = options;
  if (reserve >= contextWindow) throw noRoom();
  const step = Math.floor((contextWindow - reserve) / 10);
  const models = new WeakMap<CallInfo, string>();
  const fit = <Event extends BeforeModel>(event: Event, call: CallInfo): Event => {
    const { messages, options: request } = event;
    const model = models.get(call);
    const fixed = countRequest(counter, { ...request, messages: [] }, model);
    const kept = Math.max(reserve, request.maxTokens ?? 0);
    const isTask = taskOf(messages, call.callId);
    const budget = contextWindow - fixed - kept;
    const fitted = fitMessages(messages, budget, isTask, {
      counter,
      // Where there is little room, a step must not take most of it.
      step: Math.max(0, Math.min(step, Math.floor(budget / 4))),
      ...(model === undefined ? {} : { model }),
    });
    if (fitted.over > 0) throw verdict(tooLong(fitted.over, { contextWindow, fixed, kept }));
    return fitted.messages === messages ? event : { ...event, messages: fitted.messages };
  };
  return [
    learning(counter, models),
    onCall('preReasoning', (call) => map((event) => fit(event, call)), placed),
    onCall('preSummary', (call) => map((event) => fit(event, call)), placed),
    onCall('prePlanning', (call) => map((event) => fit(event, call)), placed),
  ];
};

const placed = { name: 'fitContext', priority: fitAt };

/** Notes the model of each call, and lets the counter learn from it. */
const learning = (counter: TokenCounter, models: WeakMap<CallInfo, string>): Interceptor =>
  prepare(
    map((preparation) => {
      const { call, options } = preparation;
      if (options.model === undefined) return preparation;
      models.set(call, options.model.name);
      const model = learnUsage(options.model, counter);
      return { ...preparation, options: { ...options, model } };
    }),
    placed,
  );

const rules: Readonly<Record<keyof FitContextOptions, Rule>> = {
  contextWindow: wholeNumber(1),
  reserve: wholeNumber(0),
  counter: having('count', 'a TokenCounter, such as createTokenCounter() makes'),
};

const noRoom = (): MillraceError =>
  misuse("fitContext(): 'reserve' leaves nothing of 'contextWindow'.");

const tooLong = (
  over: number,
  { contextWindow, fixed, kept }: Readonly<Record<'contextWindow' | 'fixed' | 'kept', number>>,
): MillraceError =>
  new MillraceError(
    'contextTooLong',
    `The request is about ${over} tokens too long for a context window of ${contextWindow}: ${fixed} are system prompt and tools, ${kept} the answer. Shorten the input, or use a larger model.`,
    { over },
  );

/**
 * Tells a counter what each request to a model was counted as, and what the provider says that it was. It stands around the model because only there
 * a request is what is sent: an overflow may have shortened it. A provider that reports nothing teaches nothing, and neither does a request that is mostly media.
 */
const learnUsage = (model: Model, counter: TokenCounter): Model => {
  checkModel('learnUsage()', model);
  if (counter.learn === undefined) return model;
  const { name } = model;
  return around(model, (request, context) =>
    defer(() => {
      let usage = noUsage;
      let sent = request;
      const shortened = (messages: typeof request.messages): void => {
        sent = { ...request, messages };
        context.shortened?.(messages);
      };
      return model.stream$(request, { ...context, shortened }).pipe(
        tap({
          next: (chunk) => {
            if (chunk.type === 'usage') usage = updatedUsage(usage, chunk.usage);
            else if (chunk.type === 'restart') usage = noUsage;
          },
          complete: () => {
            const { text: estimated, media } = weighRequest(counter, sent);
            const actual = inputOf(usage);
            if (actual === 0 || media > estimated / 10) return;
            counter.learn?.({ estimated, actual: actual - media, model: name });
          },
        }),
      );
    }),
  );
};

const inputOf = ({ inputTokens, cacheReadTokens, cacheWriteTokens }: Usage): number =>
  inputTokens + cacheReadTokens + cacheWriteTokens;

/**
 * Sends a request once more, cut to half of its messages, if the provider finds it too long before it says anything: the oldest messages go first, the task
 * stays, and a `warning` reports what was left out. If that is too long as well, or nothing can be left out, the error is `contextTooLong`. The
 * providers' models do this by default.
 */
export const shortenOnOverflow = (model: Model): Model => {
  checkModel('shortenOnOverflow()', model);
  return around(model, (request, context) =>
    defer(() => {
      let hasContent = false;
      return model.stream$(request, context).pipe(
        tap(({ type }) => (hasContent ||= type !== 'usage' && type !== 'restart')),
        catchError((error: unknown) => {
          const isOverflow = isMillraceError(error) && error.code === 'contextTooLong';
          const shorter =
            isOverflow && !hasContent
              ? shortened(model.name, request.messages, context)
              : undefined;
          if (shorter === undefined) throw error;
          const { messages, warning: message } = shorter;
          // Whoever hears of it may leave, and then nothing is sent.
          const warned$ = defer(() => {
            context.report({ type: 'warning', message });
            context.shortened?.(messages);
            return EMPTY;
          });
          return concat(warned$, model.stream$({ ...request, messages }, context));
        }),
      );
    }),
  );
};

/** The messages cut to half of what they were, around those that the call was asked with; nothing if all the rest is needed, or if a message has begun. */
const shortened = (
  name: string,
  messages: readonly Message[],
  { callId = '' }: Pick<ModelContext, 'callId'>,
): { readonly messages: readonly Message[]; readonly warning: string } | undefined => {
  if (messages.at(-1)?.role === 'assistant') return undefined;
  const half = countMessages(plainCounter, messages) / 2;
  const isTask = taskOf(messages, callId);
  const { omitted, omittedTokens, cut, ...fitted } = fitMessages(messages, half, isTask);
  if (omitted + cut === 0) return undefined;
  const without = `without ${omitted} earlier messages (about ${omittedTokens} tokens)`;
  const shorter = cut === 0 ? without : `${without}, and with ${cut} results of tools cut`;
  const warning = `The model '${name}' found the request too long: it is sent again ${shorter}.`;
  return { messages: fitted.messages, warning };
};
