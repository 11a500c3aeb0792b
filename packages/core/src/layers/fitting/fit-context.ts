import { catchError, concat, defer, EMPTY, map, tap } from 'rxjs';
import type { AgentOptions } from '../../agent.js';
import type { CallInfo } from '../../values/reply.js';
import { updatedUsage } from '../../phases/message-builder.js';
import { isMillraceError, MillraceError, misuse } from '../../values/errors.js';
import type { BeforeModel } from '../../events.js';
import type { ContentBlock, Message, ToolMessage, ToolResultBlock } from '../../values/message.js';
import { freezeMessage, textBlock, textOf } from '../../values/message.js';
import { type Interceptor, on, onCall, prepare } from '../../seams/interceptor.js';
import { characterEnd, characterStart } from '../../values/surrogates.js';
import type { Model, ModelContext } from '../../models/model.js';
import { around, checkModel } from '../../models/timeouts.js';
import { checkOptions, having, type Rule, wholeNumber } from '../../values/options.js';
import { taskOf } from '../../models/prompt.js';
import type { InputSchema } from '../../values/schema.js';
import { jsonSchema } from '../../schema/index.js';
import { toolOutput, type ToolOutput } from '../../values/tool-output.js';
import { tool } from '../../tools/tool.js';
import { usesIn } from '../../memories/suspend.js';
import type { Tool } from '../../tools/types.js';
import { noUsage, type Usage } from '../../values/usage.js';
import { verdict } from '../../flow/stage.js';
import { withOwnTools } from '../select-tools.js';
import {
  countMessages,
  countRequest,
  createTokenCounter,
  mediaTokens,
  plainCounter,
  type TokenCounter,
  weighRequest,
} from '../../models/count-request.js';
import { estimateText } from '../../models/estimate-tokens.js';
import { fitMessages } from '../../models/fit-messages.js';

const fitAt = 10_000;

/** What requests have to fit into. */
export interface FitContextOptions {
  /** Tokens that the model can take in all, those of its answer among them. */
  readonly contextWindow: number;
  /** Tokens that are kept free for the answer. Where the request says `maxTokens`, at least these. Default: 4,096. */
  readonly reserve?: number;
  /** Counts tokens. Default: one of its own, which calibrates itself: the estimates of `estimateTokens`, corrected model by model by the usage that providers report. */
  readonly counter?: TokenCounter;
}

/**
 * Makes every request fit into the context window of its model: `use: [fitContext({ contextWindow: 128_000 })]`. It leaves out the oldest turns first and never the task, in steps of a tenth of the window, and never changes memory. It runs after all other
 * interceptors, and its counter learns from the usage that the model reports. Errors with `contextTooLong` if what must stay is too long.
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
  counter: having('count', 'an object with count(text)'),
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
 * Teaches a counter from each request that was sent and the usage that the provider reports. Skips requests without reported usage and those that are mostly media.
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
 * If the provider rejects a request as too long before any content, sends it again with half of its messages: the oldest go first, the task stays, and a `warning` reports what was left out. Errors
 * with `contextTooLong` if that fails as well, or nothing can be left out. The providers' models do this by default.
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

/** An agent that puts old large results of its tools away, and has the tool to read them again: `createAgent(withEviction({ model, tools }))`. */
export const withEviction = <const Output extends InputSchema | undefined = undefined>(
  options: AgentOptions<Output>,
  eviction: EvictionOptions = {},
): AgentOptions<Output> => {
  const own = withOwnTools(options, [readResult()]);
  return { ...own, use: [...(own.use ?? []), evictResults(eviction)] };
};

const most = 8_000;

/** Makes the tool by which a model reads results that `evictResults` has put away: those of its own conversation, and no others. */
const readResult = (): Tool =>
  tool({
    name: readResultName,
    idempotent: true,
    description: 'Reads a tool result that was put away, by its tool_use_id.',
    input: jsonSchema({
      type: 'object',
      properties: {
        tool_use_id: { type: 'string', description: 'From the marker.' },
        from: {
          type: 'integer',
          minimum: 0,
          description: 'Default: 0.',
        },
        length: {
          type: 'integer',
          minimum: 1,
          maximum: most,
          description: `Default: ${most}.`,
        },
      },
      required: ['tool_use_id'],
    }),
    run: ({ tool_use_id: id, from = 0, length = most }, context) => {
      const result = context.messages
        .flatMap((message) => (message.role === 'tool' ? message.content : []))
        .find(({ toolUseId }) => toolUseId === id);
      if (result !== undefined) return partOf(result, from, length);
      throw new Error(
        `No result has the tool_use_id ${JSON.stringify(id)}. Use the one in the marker.`,
      );
    },
  });

const partOf = (result: ToolResultBlock, from: number, length: number): ToolOutput => {
  const text = textOf(result);
  const begin = characterStart(text, Math.min(from, text.length));
  const end = characterEnd(text, Math.min(begin + length, text.length));
  const rest = end < text.length ? ` Continue with {"from": ${end}}.` : '';
  const head = `[Characters ${begin} to ${end} of ${text.length}.${rest}]\n`;
  const media = begin === 0 ? result.content.filter(isMedia) : [];
  return toolOutput({ content: [textBlock(head + text.slice(begin, end)), ...media] });
};

const isMedia = ({ type }: ContentBlock): boolean => type !== 'text';

/** Which results of tools are put away. */
export interface EvictionOptions {
  /** The newest batches of results that are never put away. Default: 3. */
  readonly keep?: number;
  /** Tokens that a result must have to be worth it. Default: 500. */
  readonly minTokens?: number;
}

const readResultName = 'read_result';

/**
 * Replaces old large tool results, in requests only, by a marker with their beginning and the way to read them in full: the tool `read_result`. Does nothing if a request does not offer that tool; `withEviction` adds both. Between `keep` and twice as many
 * batches stay whole, and what was evicted keeps the same marker, so that the provider's cache holds. Needs a memory that keeps its oldest messages.
 */
export const evictResults = (options: EvictionOptions = {}): readonly Interceptor[] => {
  checkOptions('evictResults()', options, evictionRules);
  const { keep = 3, minTokens = 500 } = options;
  const known = new WeakMap<ToolMessage, Message>();
  const putAway = (message: ToolMessage, uses: ReturnType<typeof usesIn>): Message => {
    const evicted = known.get(message) ?? evictedOf(message, uses, minTokens);
    known.set(message, evicted);
    return evicted;
  };
  const evict = <Event extends BeforeModel>(event: Event): Event => {
    const { messages, options: request } = event;
    if (request.tools?.some(({ name }) => name === readResultName) !== true) return event;
    const batches = messages.filter((message) => message.role === 'tool');
    const old = new Set<Message>(batches.slice(0, putAwayOf(batches.length, keep)));
    if (old.size === 0) return event;
    const uses = usesIn(messages);
    return {
      ...event,
      messages: messages.map((message) =>
        message.role === 'tool' && old.has(message) ? putAway(message, uses) : message,
      ),
    };
  };
  const placed = { name: 'evictResults', priority: putAwayAt };
  return [
    on('preReasoning', map(evict), placed),
    on('preSummary', map(evict), placed),
    on('prePlanning', map(evict), placed),
  ];
};

const putAwayOf = (batches: number, keep: number): number =>
  Math.max(0, Math.floor((batches - keep) / keep) * keep);

const evictedOf = (
  message: ToolMessage,
  uses: ReturnType<typeof usesIn>,
  minTokens: number,
): Message => {
  const evicted = (result: ToolResultBlock): ToolResultBlock => {
    const text = textOf(result);
    const media = result.content.filter(({ type }) => type !== 'text').length;
    const tokens = estimateText(text) + media * mediaTokens;
    if (tokens < minTokens) return result;
    const { note: _note, details: _details, ...rest } = result;
    const name = uses.get(result.toolUseId)?.name ?? 'a tool';
    const marker = markerFor(text, media, name, result.toolUseId);
    return estimateText(marker) < tokens ? { ...rest, content: [textBlock(marker)] } : result;
  };
  const content = message.content.map(evicted);
  const isSame = content.every((result, index) => result === message.content[index]);
  return isSame ? message : freezeMessage({ ...message, content });
};

const shown = 200;

/** What comes from elsewhere is quoted as JSON: it cannot end the marker. */
const markerFor = (text: string, media: number, name: string, id: string): string => {
  const also = media === 0 ? '' : ` and ${media} media`;
  const beginning = JSON.stringify(text.slice(0, characterStart(text, shown)));
  const input = JSON.stringify({ tool_use_id: id });
  return `[A result of ${JSON.stringify(name)} has been put away: ${text.length} characters${also}. It begins with ${beginning}. Read it with ${readResultName} and ${input}.]`;
};

const evictionRules: Readonly<Record<keyof EvictionOptions, Rule>> = {
  keep: wholeNumber(1),
  minTokens: wholeNumber(1),
};

/** Behind all other interceptors, and in this order: what is put away need not be left out, and what is counted is what is sent. */
const putAwayAt = 9_000;
