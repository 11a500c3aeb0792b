import {
  aroundModel,
  type Message,
  MillraceError,
  type Model,
  type ModelChunk,
  type ModelContext,
  type ModelRequest,
  textBlock,
  timeouts,
  toolCallsOf,
  type Usage,
} from 'millrace';
import { countRequest, estimateTokens, plainCounter } from 'millrace/fitting';
import { isRecord } from 'millrace/values';
import { defer, Observable, Subject, takeUntil } from 'rxjs';
import type { Dialect, PromptNeeds } from './dialects.js';
import { classify } from './classify.js';
import { withoutDamage } from '../damaged-text.js';
import { createReader, type Reader } from './reader.js';
import { toolTable } from './read-entry.js';
import { historyIn } from './history.js';

/**
 * Adds tool calls to a model without native ones: describes the tools in its prompt, and parses its text, as it
 * streams, into thoughts, answers and tool calls, in the form of the dialect. Unreadable text ends with `malformed`,
 * and the loop asks again.
 */
export const textTools = (model: Model, dialect: Dialect): Model => {
  if (!isRecord(model) || typeof model.stream$ !== 'function') {
    throw misuse("textTools() takes a model, such as ollama('gemma3:4b').");
  }
  const missing = missingIn(dialect);
  if (missing !== undefined) {
    throw misuse(
      `textTools() takes a dialect as its second argument, such as actionDialect(): this one lacks ${missing}.`,
    );
  }
  const timed = timeouts(model);
  return {
    ...aroundModel(timed, (request, context) =>
      defer(() => {
        const isPlain = !hasTools(request);
        const asked = (isPlain ? plainRequest : textRequest)(request, dialect, model);
        return timed
          .stream$(asked, context)
          .pipe(
            withoutDamage((source) => read(source, { request, asked, dialect, context, isPlain })),
          );
      }),
    ),
    toolsInPrompt: true,
    unsupported: (model.unsupported ?? []).filter((option) => !inPrompt.includes(option)),
  };
};

const misuse = (message: string): MillraceError => new MillraceError('config', message);

/** Options that the prompt contains. */
const inPrompt: readonly string[] = ['tools', 'toolChoice', 'outputSchema'];

const missingIn = (dialect: unknown): string | undefined => {
  if (!isRecord(dialect)) return 'everything';
  const lists = ['labels', 'completions', 'stopSequences'].find(
    (key) => !Array.isArray(dialect[key]),
  );
  const { write, prompts } = dialect;
  if (!isRecord(write)) return 'write';
  if (!isRecord(prompts)) return 'prompts';
  if (typeof dialect['prompt'] !== 'function') return 'prompt';
  if (typeof dialect['maxUses'] !== 'number') return 'maxUses';
  const parts = ['format', 'tools', 'choice', 'output', 'forms', 'correction', 'goOn'];
  const part = parts.find((key) => typeof prompts[key] !== 'function');
  const writer = ['uses', 'answer', 'thought', 'result'].find(
    (key) => typeof write[key] !== 'function',
  );
  return lists ?? (part && `prompts.${part}`) ?? (writer && `write.${writer}`);
};

const inventedParts = { observation: 'a tool result', turn: 'the next turn' } as const;

interface Reading {
  readonly request: ModelRequest;
  readonly asked: ModelRequest;
  readonly dialect: Dialect;
  readonly context: ModelContext;
  readonly isPlain: boolean;
}

const estimated = (asked: ModelRequest, answer: string): Partial<Usage> => ({
  inputTokens: countRequest(plainCounter, asked),
  outputTokens: estimateTokens(answer),
});

/** Parses the text of a model. A custom Observable: each delta may emit several chunks, or end the stream. */
const read = (source: Observable<ModelChunk>, reading: Reading): Observable<ModelChunk> =>
  new Observable((subscriber) => {
    const cut$ = new Subject<void>();
    const reply = createReply(reading, {
      emit: (chunk) => subscriber.next(chunk),
      cut: () => cut$.next(),
    });
    return source.pipe(takeUntil(cut$)).subscribe({
      next: reply.take,
      error: (error: unknown) => {
        reply.fail();
        subscriber.error(error);
      },
      complete: () => {
        reply.end();
        subscriber.complete();
      },
    });
  });

interface ReplyOutput {
  readonly emit: (chunk: ModelChunk) => void;
  /** Ends the request. */
  readonly cut: () => void;
}

/** The reply of a model: an attempt, and a new one after each restart. */
const createReply = (reading: Reading, { emit, cut }: ReplyOutput) => {
  /** Whether only text has passed, which a restart can take back: tool calls of the server would be lost. */
  let isTextOnly = true;
  let hasUsage = false;
  let finish: Extract<ModelChunk, { readonly type: 'finish' }> | undefined;
  const begin = (): Attempt => createAttempt(reading, emit, () => isTextOnly);
  let attempt = begin();

  const endAt = (what: string): void => {
    reading.context.report({
      type: 'warning',
      message: `The model started to invent ${what}: its reply is cut off there.${hasUsage ? '' : ' Its usage is estimated.'}`,
    });
    attempt.conclude();
    if (!hasUsage) emit({ type: 'usage', usage: estimated(reading.asked, attempt.written()) });
    emit({ type: 'finish', finish: 'stop' });
    cut();
  };
  const take = (chunk: ModelChunk): void => {
    if (!['text', 'textStart', 'usage', 'facts', 'finish'].includes(chunk.type)) isTextOnly = false;
    if (chunk.type === 'usage') hasUsage = true;
    switch (chunk.type) {
      case 'text': {
        const invented = attempt.push(chunk.text);
        if (invented !== undefined) endAt(inventedParts[invented]);
        return;
      }
      case 'restart':
        finish = undefined;
        attempt = begin();
        emit(chunk);
        return;
      case 'finish':
        finish = chunk;
        return;
      default:
        attempt.pass(chunk);
    }
  };
  return {
    take,
    fail: (): void => {
      attempt.flush();
    },
    end: (): void => {
      // Text may follow a finish.
      if (finish?.finish === 'stop') attempt.conclude();
      else attempt.flush();
      if (finish !== undefined) emit(finish);
    },
  };
};

type Attempt = ReturnType<typeof createAttempt>;

/** The text of a reply since its last restart, and what was read from it. */
const createAttempt = (
  { request, dialect, context, isPlain }: Reading,
  emitChunk: (chunk: ModelChunk) => void,
  mayRetract: () => boolean,
) => {
  const { tools = [], toolChoice, outputSchema } = request;
  const pieces: string[] = [];
  let thoughts: string[] = [];
  let nativeUses = 0;
  let isEnded = false;
  const emit = (chunk: ModelChunk): void => {
    if (chunk.type === 'restart') thoughts = [];
    if (chunk.type === 'thinking') thoughts.push(chunk.text);
    emitChunk(chunk);
  };
  const mayAct = toolChoice !== 'none';
  const reader = createReader({ dialect, tools, mayAct, outputSchema, emit, isPlain, mayRetract });
  const written = (): string => {
    const text = pieces.join('');
    return text.slice(0, text.length - reader.unread);
  };
  return {
    written,
    /** Returns what the model has started to invent, if it has. */
    push: (text: string): Reader['isOver'] => {
      if (isEnded) return undefined;
      pieces.push(text);
      reader.push(text);
      return reader.isOver;
    },
    pass: (chunk: ModelChunk): void => {
      if (chunk.type === 'toolCall' && chunk.name !== undefined) nativeUses += 1;
      emit(chunk);
    },
    /** Emits held text as it is. Runs no tools: the text may be cut off. */
    flush: (): void => {
      if (isEnded) return;
      isEnded = true;
      reader.end();
    },
    /** Emits the tool calls, or the answer, or asks again. */
    conclude: (): void => {
      if (isEnded) return;
      isEnded = true;
      const result = reader.end();
      const { chunks, reports } = classify(result, {
        dialect,
        prompts: dialect.prompts,
        asked: promptNeeds(request),
        tools: toolTable(tools),
        written: written(),
        thought: thoughts.join('').trim(),
        nativeUses,
        mayRetract: mayRetract(),
      });
      reports.forEach(context.report);
      chunks.forEach(emit);
    },
  };
};

const hasTools = ({ tools = [], messages }: ModelRequest): boolean =>
  tools.length > 0 ||
  messages.some(
    (message) =>
      message.role === 'tool' || (message.role === 'assistant' && toolCallsOf(message).length > 0),
  );

const promptNeeds = ({ tools = [], toolChoice, outputSchema }: ModelRequest): PromptNeeds => ({
  tools,
  toolChoice,
  outputSchema,
});

/** Rewrites a request for any model: its tools and tool calls become text. */
export const textRequest = (
  request: ModelRequest,
  dialect: Dialect,
  model: Pick<Model, 'unsupported'>,
): ModelRequest => {
  const { tools: _tools, toolChoice: _choice, outputSchema: _schema, ...rest } = request;
  const needs = promptNeeds(request);
  const { format, tools, choice, output } = dialect.prompts;
  const parts = needs.tools.length === 0 ? [output] : [format, tools, choice, output];
  const sections = parts.map((part) => part(needs)).filter((part) => part !== '');
  const prompt = needs.tools.length === 0 ? sections.join('\n\n') : dialect.prompt(sections, needs);
  const asked = withPrompt(
    { ...rest, messages: historyIn(request.messages, dialect) },
    prompt,
    model,
  );
  return needs.tools.length === 0 ? asked : withStops(asked, dialect, model);
};

const plainRequest = (
  request: ModelRequest,
  dialect: Dialect,
  model: Pick<Model, 'unsupported'>,
): ModelRequest => {
  const { tools: _tools, toolChoice: _choice, ...rest } = request;
  const { outputSchema, ...plain } = rest;
  if (outputSchema === undefined || model.unsupported?.includes('outputSchema') !== true) {
    return rest;
  }
  return withPrompt(plain, dialect.prompts.output(promptNeeds(request)), model);
};

const withStops = (
  request: ModelRequest,
  { stopSequences }: Dialect,
  { unsupported }: Pick<Model, 'unsupported'>,
): ModelRequest => {
  if (stopSequences.length === 0 || unsupported?.includes('stopSequences') === true) return request;
  const { stopSequences: own = [] } = request;
  // Some vendors accept only four.
  const room = Math.max(0, 4 - own.length);
  const added = stopSequences.filter((it) => !own.includes(it)).slice(0, room);
  return { ...request, stopSequences: [...own, ...added] };
};

const withPrompt = (
  request: ModelRequest,
  prompt: string,
  { unsupported }: Pick<Model, 'unsupported'>,
): ModelRequest => {
  if (prompt === '') return request;
  if (unsupported?.includes('system') !== true) {
    const { system = '' } = request;
    return { ...request, system: system === '' ? prompt : `${system}\n\n${prompt}` };
  }
  const at = request.messages.findIndex(({ role }) => role === 'user');
  if (at === -1) {
    const message: Message = { id: 'prompt', role: 'user', content: [textBlock(prompt)] };
    return { ...request, messages: [message, ...request.messages] };
  }
  const messages = request.messages.map((message, index): Message =>
    index === at && message.role === 'user'
      ? { ...message, content: [textBlock(`${prompt}\n\n`), ...message.content] }
      : message,
  );
  return { ...request, messages };
};
