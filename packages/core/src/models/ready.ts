import { defer, map, type MonoTypeOperatorFunction, Observable, type Subscription } from 'rxjs';
import { MillraceError, misuse } from '../errors.js';
import type {
  Model,
  ModelChunk,
  ModelContext,
  ModelRequest,
  RetryBudget,
  ToolChoice,
} from '../model.js';
import { isModel } from '../options.js';
import { createToolParts, type ToolUseChunk, written } from '../tool-parts.js';

/** Readies a model for a request: it keeps time, and answers in the form that is asked for. */
export const ready = (model: Model): Model =>
  inTime(model.unsupported?.includes('outputSchema') === true ? answerTool(model) : model);

/**
 * Gives a model without native structured output a tool to answer with: the `outputSchema` becomes its input, and its arguments are streamed as the text of the answer. Left out if a request forces another tool.
 */
export const answerTool = (model: Model): Model => {
  checkModel('answerTool()', model);
  const takesChoice = model.unsupported?.includes('toolChoice') !== true;
  return around(
    model,
    ({ outputSchema, ...request }, context) => {
      const { tools = [], toolChoice } = request;
      if (outputSchema === undefined || forces(toolChoice)) return model.stream$(request, context);
      const name = freeName(tools.map((tool) => tool.name));
      const choice: ToolChoice = toolChoice === 'none' ? { name } : 'required';
      const asked: ModelRequest = {
        ...request,
        tools: [...tools, { name, description, inputSchema: outputSchema }],
        ...(takesChoice ? { toolChoice: choice } : {}),
      };
      return defer(() => model.stream$(asked, context)).pipe(asText(name));
    },
    { unsupported: (model.unsupported ?? []).filter((option) => option !== 'outputSchema') },
  );
};

const description = 'Gives the final answer, and so ends the task. Use it once, at the end.';

const forces = (choice: ToolChoice | undefined): boolean =>
  choice === 'required' || typeof choice === 'object';

const freeName = (taken: readonly string[], count = 1): string => {
  const name = count === 1 ? 'final_answer' : `final_answer_${count}`;
  return taken.includes(name) ? freeName(taken, count + 1) : name;
};

const asText =
  (name: string): MonoTypeOperatorFunction<ModelChunk> =>
  (source) =>
    defer(() => {
      const parts = createToolParts(0, () => false);
      let attempt = 1;
      let hasText = false;
      const spoken = (chunk: ToolUseChunk): ModelChunk => {
        const { part, isNew } = parts.add(chunk, attempt);
        if (part.name !== name) return chunk;
        const json = chunk.json ?? (chunk.input === undefined ? '' : written(chunk.input));
        const gap = isNew && hasText ? '\n\n' : '';
        hasText = true;
        return { type: 'text', text: `${gap}${json}` };
      };
      return source.pipe(
        map((chunk) => {
          if (chunk.type === 'toolUse') return spoken(chunk);
          if (chunk.type === 'text') hasText ||= chunk.text !== '';
          if (chunk.type === 'restart') {
            attempt += 1;
            hasText = false;
          }
          return chunk;
        }),
      );
    });

/** Makes a model watch over `context.timeouts`, unless it does so already. */
export const inTime = (model: Model): Model =>
  model.keepsTime === true
    ? model
    : around(
        model,
        (request, context) =>
          defer(() => model.stream$(request, context)).pipe(watched(model.name, context)),
        { keepsTime: true },
      );

/** Errors with `timeout` when a model is silent for too long. The clock stops while demand is closed. One timer checks for silence: one per delta would cost too much. */
const watched = (
  name: string,
  { timeouts: { firstChunkMs, chunkMs } = {}, demand, scheduler, report }: ModelContext,
): MonoTypeOperatorFunction<ModelChunk> => {
  if (firstChunkMs === undefined && chunkMs === undefined) return (source) => source;
  const first = {
    ms: firstChunkMs,
    what: `did not begin to answer within ${firstChunkMs} ms (firstChunkMs)`,
  };
  const next = { ms: chunkMs, what: `fell silent for ${chunkMs} ms in its answer (chunkMs)` };
  return (source) =>
    new Observable((subscriber) => {
      let limit: Limit | undefined = first;
      let since = scheduler.now();
      let closedAt: number | undefined;
      let looking: Subscription | undefined;
      let isReported = false;

      const look = (): void => {
        looking?.unsubscribe();
        looking = undefined;
        if (closedAt !== undefined || limit === undefined) return;
        const { ms = Infinity, what } = limit;
        const waitedMs = scheduler.now() - since;
        if (waitedMs >= ms) {
          const error = new MillraceError('timeout', `The model '${name}' ${what}.`);
          if (limit === first) silences.add(error);
          subscriber.error(error);
          return;
        }
        if (limit === first && !isReported && waitedMs >= longWaitMs) {
          isReported = true;
          report({ type: 'modelWaiting', model: name, waitedMs });
        }
        const next = limit === first && !isReported ? Math.min(ms, longWaitMs) : ms;
        if (next < Infinity) looking = scheduler.schedule(look, next - waitedMs);
      };
      const turnTo = (other: Limit | undefined): void => {
        if (limit === other) return;
        limit = other;
        look();
      };
      const hear = (chunk: ModelChunk): void => {
        const says = isContent(chunk);
        if (says || chunk.type === 'restart') since = scheduler.now();
        if (chunk.type === 'finish') turnTo(undefined);
        else if (chunk.type === 'restart') turnTo(first);
        else if (says && limit !== undefined) turnTo(next);
        subscriber.next(chunk);
      };
      subscriber.add(() => looking?.unsubscribe());
      subscriber.add(
        demand.open$.subscribe({
          next: (open) => {
            const now = scheduler.now();
            if (!open) closedAt ??= now;
            else if (closedAt !== undefined) {
              since += now - Math.max(closedAt, since);
              closedAt = undefined;
            }
            look();
          },
          error: (error: unknown) => subscriber.error(error),
        }),
      );
      return source.subscribe({
        next: hear,
        error: (error: unknown) => subscriber.error(error),
        complete: () => subscriber.complete(),
      });
    });
};

const silences = new WeakSet<object>();

export const isSilence = (error: MillraceError): boolean => silences.has(error);

const longWaitMs = 10_000;

interface Limit {
  readonly ms: number | undefined;
  readonly what: string;
}

/** Makes a model that answers otherwise than the one it stands for, and is else like it. */
export const around = (
  { name, unsupported, keepsTime, toolsInPrompt }: Model,
  stream$: Model['stream$'],
  differences: Partial<Pick<Model, 'unsupported' | 'keepsTime' | 'toolsInPrompt'>> = {},
): Model => ({
  name,
  ...(unsupported === undefined ? {} : { unsupported }),
  ...(keepsTime === undefined ? {} : { keepsTime }),
  ...(toolsInPrompt === undefined ? {} : { toolsInPrompt }),
  ...differences,
  stream$,
});

/** Refuses what is no model, and says what to pass. */
export const checkModel = (owner: string, model: unknown): void => {
  const [accepts, what] = isModel;
  if (accepts(model)) return;
  const list = Array.isArray(model) ? ' Pass several as arguments, not as a list.' : '';
  throw misuse(`${owner} takes ${what}.${list}`);
};

/** Tells whether a chunk shows something of an answer. A sign of life, an empty delta or a count does not. */
export const isContent = (chunk: ModelChunk): boolean => {
  switch (chunk.type) {
    case 'text':
      return chunk.text !== '';
    case 'thinking':
      return chunk.text !== '' || chunk.signature !== undefined;
    case 'toolUse':
    case 'block':
    case 'malformed':
      return true;
    case 'usage':
    case 'restart':
    case 'finish':
      return false;
  }
};

export const createRetryBudget = (requests: number): RetryBudget => {
  let left = requests;
  return {
    take: () => {
      if (left <= 0) return false;
      left -= 1;
      return true;
    },
  };
};
