import { map } from 'rxjs';
import type { CallInfo } from '../call-info.js';
import { MillraceError, misuse } from '../errors.js';
import type { BeforeModel } from '../events.js';
import { type Interceptor, onCall, prepare } from '../interceptor.js';
import { checkOptions, having, type Rule, wholeNumber } from '../options.js';
import { verdict } from '../verdict.js';
import { countRequest } from './count-request.js';
import { fitMessages } from './fit-messages.js';
import { learnUsage } from './learn-usage.js';
import { fitAt } from './priorities.js';
import { taskOf } from './task.js';
import { createTokenCounter, type TokenCounter } from './token-counter.js';

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
 * Makes every request of an agent fit into the context window of its model: `interceptors: [fitContext({ contextWindow: 128_000 })]`. Of the
 * request only, it leaves out what `fitMessages` does, in steps of a tenth of the window: memory keeps all. It comes behind all other
 * interceptors, and its counter learns from the usage that the model reports. Where what has to stay is too long, it errors with `contextTooLong`.
 */
export const fitContext = (options: FitContextOptions): readonly Interceptor[] => {
  checkOptions('fitContext()', options, rules, ['contextWindow']);
  const { contextWindow, reserve = 4_096, counter = createTokenCounter() } = options;
  if (reserve >= contextWindow) throw noRoom(contextWindow, reserve);
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

const noRoom = (contextWindow: number, reserve: number): MillraceError =>
  misuse(
    `fitContext(): of a 'contextWindow' of ${contextWindow} tokens, a 'reserve' of ${reserve} leaves nothing. Give a smaller 'reserve'.`,
  );

const tooLong = (
  over: number,
  { contextWindow, fixed, kept }: Readonly<Record<'contextWindow' | 'fixed' | 'kept', number>>,
): MillraceError =>
  new MillraceError(
    'contextTooLong',
    `The request is about ${over} tokens too long for a context window of ${contextWindow}: ${fixed} are the system prompt and the tools, ${kept} are kept for the answer. Shorten the input, or use a larger model.`,
    { over },
  );
