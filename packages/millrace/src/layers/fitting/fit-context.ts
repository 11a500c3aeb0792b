import { defer, map, tap } from 'rxjs';
import type { CallInfo } from '../../values/reply.js';
import { updatedUsage } from '../../phases/message-builder.js';
import { MillraceError, misuse } from '../../values/errors.js';
import type { BeforeModel } from '../../events.js';
import type { ContentBlock, Message, ToolMessage, ToolResultBlock } from '../../values/message.js';
import { freezeMessage, textBlock, textOf } from '../../values/message.js';
import { type Interceptor, on, onCall } from '../../seams/interceptor.js';
import { prepare } from '../interceptors/prepare.js';
import { characterEnd, characterStart } from '../../values/surrogates.js';
import type { Model } from '../../models/model.js';
import { aroundModel } from '../../models/around-model.js';
import { checkModel } from '../../models/timeouts.js';
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
  countRequest,
  createTokenCounter,
  mediaTokens,
  type TokenCounter,
  weighRequest,
} from '../../models/count-request.js';
import { estimateText } from '../../models/estimate-tokens.js';
import { fitMessages } from '../../models/fit-messages.js';
import type { AgentOptions } from '../../call/agent-options.js';

const fitPriority = 10_000;

export interface FitContextOptions {
  /** Size of the model's context window in tokens, including the answer. */
  readonly contextWindow: number;
  /** Tokens to keep free for the answer; the request's `maxTokens` if that is larger. Default: 4,096. */
  readonly reserve?: number | undefined;
  /** Counts tokens. Default: `estimateTokens`, calibrated for each model by the usage that providers report. */
  readonly counter?: TokenCounter | undefined;
}

/**
 * Fits every request into the context window of its model: `use: [fitContext({ contextWindow: 128_000 })]`. Drops the
 * oldest turns first, in steps of a tenth of the window, but never the task, and never changes memory; recalled messages are the oldest. Runs after all
 * other interceptors. Its counter learns from reported usage. Errors with `contextTooLong` if the rest does not fit.
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
    const reserved = Math.max(reserve, request.maxTokens ?? 0);
    const isTask = taskOf(messages, call.callId);
    const budget = contextWindow - fixed - reserved;
    const fitted = fitMessages(messages, budget, isTask, {
      counter,
      // With little room, a step must not take most of it.
      step: Math.max(0, Math.min(step, Math.floor(budget / 4))),
      ...(model === undefined ? {} : { model }),
    });
    if (fitted.over > 0)
      throw verdict(tooLong(fitted.over, { contextWindow, fixed, kept: reserved }));
    return fitted.messages === messages ? event : { ...event, messages: fitted.messages };
  };
  return [
    learnFromRequests(counter, models),
    onCall('preReasoning', (call) => map((event) => fit(event, call)), placement),
    onCall('preSummary', (call) => map((event) => fit(event, call)), placement),
    onCall('prePlanning', (call) => map((event) => fit(event, call)), placement),
  ];
};

const placement = { name: 'fitContext', priority: fitPriority };

const learnFromRequests = (counter: TokenCounter, models: WeakMap<CallInfo, string>): Interceptor =>
  prepare(
    map((preparation) => {
      const { call, options } = preparation;
      if (options.model === undefined) return preparation;
      models.set(call, options.model.name);
      const model = learnUsage(options.model, counter);
      return { ...preparation, options: { ...options, model } };
    }),
    placement,
  );

const rules: Readonly<Record<keyof FitContextOptions, Rule>> = {
  contextWindow: wholeNumber(1),
  reserve: wholeNumber(0),
  counter: having('count', 'an object with count(text)'),
};

const noRoom = (): MillraceError =>
  misuse("fitContext(): 'reserve' must be smaller than 'contextWindow'.");

const tooLong = (
  over: number,
  {
    contextWindow,
    fixed,
    kept: reserved,
  }: Readonly<Record<'contextWindow' | 'fixed' | 'kept', number>>,
): MillraceError =>
  new MillraceError(
    'contextTooLong',
    `The request is about ${over} tokens too long for a context window of ${contextWindow}: ${fixed} for the system prompt and tools, ${reserved} for the answer. Shorten the input, or use a model with a larger context window.`,
    { over },
  );

/** Trains a counter with the reported usage of each request, unless it is missing or mostly due to media. */
const learnUsage = (model: Model, counter: TokenCounter): Model => {
  checkModel('learnUsage()', model);
  if (counter.learn === undefined) return model;
  const { name } = model;
  return aroundModel(model, (request, context) =>
    defer(() => {
      let usage = noUsage;
      let sent = request;
      const onShortened = (messages: typeof request.messages): void => {
        sent = { ...request, messages };
        context.shortened?.(messages);
      };
      return model.stream$(request, { ...context, shortened: onShortened }).pipe(
        tap({
          next: (chunk) => {
            if (chunk.type === 'usage') usage = updatedUsage(usage, chunk.usage);
            else if (chunk.type === 'restart' && chunk.isSameRequest !== true) usage = noUsage;
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

/** Adds eviction of old large tool results and the tool to read them: `createAgent(withEviction({ model, tools }))`. */
export const withEviction = <const Output extends InputSchema | undefined = undefined>(
  options: AgentOptions<Output>,
  eviction: EvictionOptions = {},
): AgentOptions<Output> => {
  const own = withOwnTools(options, [readResult()]);
  return { ...own, use: [...(own.use ?? []), evictResults(eviction)] };
};

const maxLength = 8_000;

const readResult = (): Tool =>
  tool({
    name: readResultName,
    idempotent: true,
    description: 'Reads a tool result that was moved out of the conversation, by its tool_use_id.',
    input: jsonSchema({
      type: 'object',
      properties: {
        tool_use_id: { type: 'string', description: 'The id in the marker.' },
        from: { type: 'integer', minimum: 0, description: 'Default: 0.' },
        length: {
          type: 'integer',
          minimum: 1,
          maximum: maxLength,
          description: `Default: ${maxLength}.`,
        },
      },
      required: ['tool_use_id'],
    }),
    run: ({ tool_use_id: id, from = 0, length = maxLength }, context) => {
      const result = context.messages
        .flatMap((message) => (message.role === 'tool' ? message.content : []))
        .find(({ toolCallId }) => toolCallId === id);
      if (result !== undefined) return sliceOf(result, from, length);
      throw new Error(
        `No result has the tool_use_id ${JSON.stringify(id)}. Use the one in the marker.`,
      );
    },
  });

const sliceOf = (result: ToolResultBlock, from: number, length: number): ToolOutput => {
  const text = textOf(result);
  const begin = characterStart(text, Math.min(from, text.length));
  const end = characterEnd(text, Math.min(begin + length, text.length));
  const rest = end < text.length ? ` Continue with {"from": ${end}}.` : '';
  const head = `[Characters ${begin} to ${end} of ${text.length}.${rest}]\n`;
  const media = begin === 0 ? result.content.filter(isMedia) : [];
  return toolOutput({ content: [textBlock(head + text.slice(begin, end)), ...media] });
};

const isMedia = ({ type }: ContentBlock): boolean => type !== 'text';

export interface EvictionOptions {
  /** Newest batches of results that are never evicted. Default: 3. */
  readonly keep?: number | undefined;
  /** Minimum size of a result to evict, in tokens. Default: 500. */
  readonly minTokens?: number | undefined;
}

const readResultName = 'read_result';

/**
 * Replaces old large tool results, in requests only, by a marker with their beginning and how to read them in full with
 * the tool `read_result`. Does nothing if a request does not offer that tool; `withEviction` adds both. Between `keep`
 * and twice as many batches stay whole, and evicted results keep their marker, so the provider's cache stays valid.
 * Needs a memory that keeps its oldest messages.
 */
export const evictResults = (options: EvictionOptions = {}): readonly Interceptor[] => {
  checkOptions('evictResults()', options, evictionRules);
  const { keep = 3, minTokens = 500 } = options;
  const evictedBy = new WeakMap<ToolMessage, Message>();
  const evictMessage = (message: ToolMessage, uses: ReturnType<typeof usesIn>): Message => {
    const evicted = evictedBy.get(message) ?? withEvictedResults(message, uses, minTokens);
    evictedBy.set(message, evicted);
    return evicted;
  };
  const evict = <Event extends BeforeModel>(event: Event): Event => {
    const { messages, options: request } = event;
    if (request.tools?.some(({ name }) => name === readResultName) !== true) return event;
    const batches = messages.filter((message) => message.role === 'tool');
    const old = new Set<Message>(batches.slice(0, evictedBatches(batches.length, keep)));
    if (old.size === 0) return event;
    const uses = usesIn(messages);
    return {
      ...event,
      messages: messages.map((message) =>
        message.role === 'tool' && old.has(message) ? evictMessage(message, uses) : message,
      ),
    };
  };
  const placed = { name: 'evictResults', priority: evictPriority };
  return [
    on('preReasoning', map(evict), placed),
    on('preSummary', map(evict), placed),
    on('prePlanning', map(evict), placed),
  ];
};

const evictedBatches = (batches: number, keep: number): number =>
  Math.max(0, Math.floor((batches - keep) / keep) * keep);

const withEvictedResults = (
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
    const name = uses.get(result.toolCallId)?.name ?? 'a tool';
    const marker = markerFor(text, media, name, result.toolCallId);
    return estimateText(marker) < tokens ? { ...rest, content: [textBlock(marker)] } : result;
  };
  const content = message.content.map(evicted);
  const isSame = content.every((result, index) => result === message.content[index]);
  return isSame ? message : freezeMessage({ ...message, content });
};

const previewLength = 200;

/** Foreign text is quoted as JSON, so it cannot end the marker. */
const markerFor = (text: string, media: number, name: string, id: string): string => {
  const also = media === 0 ? '' : ` and ${media} media`;
  const beginning = JSON.stringify(text.slice(0, characterStart(text, previewLength)));
  const input = JSON.stringify({ tool_use_id: id });
  return `[The result of ${JSON.stringify(name)} was moved out of the conversation: ${text.length} characters${also}. It begins with ${beginning}. Read it with ${readResultName} and ${input}.]`;
};

const evictionRules: Readonly<Record<keyof EvictionOptions, Rule>> = {
  keep: wholeNumber(1),
  minTokens: wholeNumber(1),
};

/** Runs after all other interceptors and before `fitContext`: evicted results need not be dropped. */
const evictPriority = 9_000;
