import type { MessageChunk, StopChunk } from '../models/chunk-transform.js';
import type { Context } from '../seams/context.js';
import type { ChunkOf } from '../events.js';
import type { AssistantBlock, AssistantMessage, Finish } from '../values/message.js';
import { textBlock } from '../values/message.js';
import type { Malformed, ModelChunk } from '../models/model.js';
import { defined } from '../values/options.js';
import { hasEnded, type Run } from '../run.js';
import type { ToolPart, ToolParts, ToolCallChunk } from '../models/tool-parts.js';
import { createToolParts, toToolCall, written } from '../models/tool-parts.js';
import { addUsage, noUsage, type Usage } from '../values/usage.js';

export interface MessageBuilder {
  readonly messageId: string;
  readonly finish: Finish | 'pause' | undefined;
  /** Set if the text could not be read as an action. */
  readonly malformed: Malformed | undefined;
  /** Set if an interceptor ended the message. */
  readonly halt: StopChunk | undefined;
  readonly usage: Usage;
  /** Adds a chunk, and returns the delta to emit, if any. */
  add(chunk: MessageChunk): ChunkOf | undefined;
  /** Continues the message in another response, after a pause. A restart then discards that response only. */
  resume(): void;
  /** The content as one delta per block. */
  deltas(): readonly ChunkOf[];
  message(): AssistantMessage;
}

interface DraftInit {
  readonly messageId: string;
  readonly name: string;
  readonly iteration: number;
  /** Whether the conversation has a tool call with this id. */
  readonly isTaken: (toolCallId: string) => boolean;
}

interface TextPart {
  readonly type: 'text' | 'thinking';
  readonly deltas: string[];
  signature?: string;
  redacted?: boolean;
}

interface WholePart {
  readonly type: 'whole';
  readonly block: AssistantBlock;
}

type Part = TextPart | ToolPart | WholePart;

interface Attempt {
  readonly parts: Part[];
  readonly tools: ToolParts;
}

export const createMessageBuilder = ({
  messageId,
  name,
  iteration,
  isTaken,
}: DraftInit): MessageBuilder => {
  const begin = (kept: readonly Part[]): Attempt => ({
    parts: copies(kept),
    tools: createToolParts(
      iteration,
      isTaken,
      kept.filter((part) => part.type === 'tool'),
    ),
  });
  let attempts = 1;
  let attempt = begin([]);
  /** The content of earlier responses. */
  let paused: readonly Part[] = [];
  let response = 1;
  let earlier = noUsage;
  let latest = noUsage;

  const nextResponse = (): void => {
    response += 1;
    earlier = builder.usage;
    latest = noUsage;
    builder.finish = undefined;
  };
  const addText = (kind: TextPart['type'], text: string): ChunkOf | undefined => {
    const last = attempt.parts.at(-1);
    const open = last?.type === kind && last.signature === undefined ? last : undefined;
    if (open === undefined) attempt.parts.push({ type: kind, deltas: [text] });
    else open.deltas.push(text);
    return text === '' ? undefined : { messageId: builder.messageId, kind, delta: text };
  };

  const addToolCall = (chunk: ToolCallChunk): ChunkOf => {
    const { part, isNew } = attempt.tools.add(chunk, response);
    if (isNew) attempt.parts.push(part);
    const delta = chunk.json ?? (chunk.input === undefined ? '' : written(chunk.input));
    return toolDelta(builder.messageId, part, delta);
  };

  const add = (chunk: MessageChunk): ChunkOf | undefined => {
    switch (chunk.type) {
      case 'text':
        return addText('text', chunk.text);
      case 'thinking': {
        const delta = addText('thinking', chunk.text);
        seal(attempt.parts.at(-1), chunk);
        return delta;
      }
      case 'toolCall':
        return addToolCall(chunk);
      case 'block':
        attempt.parts.push({ type: 'whole', block: chunk.block });
        return;
      case 'usage':
        latest = updatedUsage(latest, chunk.usage);
        builder.usage = addUsage(earlier, latest);
        return;
      case 'restart':
        nextResponse();
        attempts += 1;
        attempt = begin(paused);
        builder.messageId = `${messageId}#${attempts}`;
        builder.malformed = undefined;
        builder.halt = undefined;
        return;
      case 'malformed':
        builder.malformed = chunk;
        return;
      case 'finish':
        builder.finish = chunk.finish;
        return;
      case 'stop':
        builder.finish = 'stop';
        builder.halt = chunk;
        return;
    }
  };

  // Without accessors: each builder would get a shape of its own.
  const builder: { -readonly [Key in keyof MessageBuilder]: MessageBuilder[Key] } = {
    messageId,
    finish: undefined,
    malformed: undefined,
    halt: undefined,
    usage: noUsage,
    resume: () => {
      nextResponse();
      paused = copies(attempt.parts);
    },
    deltas: () => attempt.parts.flatMap((part) => wholeDelta(builder.messageId, part)),
    message: () => ({
      id: builder.messageId,
      role: 'assistant',
      name,
      // Tool calls of a truncated message may be incomplete.
      content: attempt.parts
        .filter(({ type }) => builder.halt === undefined || type !== 'tool')
        .flatMap(toBlock),
    }),
    // After the finish, only usage and another attempt count.
    add: (chunk) =>
      builder.finish === undefined || chunk.type === 'usage' || chunk.type === 'restart'
        ? add(chunk)
        : undefined,
  };
  return builder;
};

/** Text grows in place. */
const copies = (parts: readonly Part[]): Part[] =>
  parts.map((part) => ('deltas' in part ? { ...part, deltas: [...part.deltas] } : part));

const toolDelta = (messageId: string, { index, id, name }: ToolPart, delta: string): ChunkOf => ({
  messageId,
  kind: 'toolInput',
  delta,
  toolCall: Object.freeze({ index, id, name }),
});

const wholeDelta = (messageId: string, part: Part): readonly ChunkOf[] => {
  switch (part.type) {
    case 'whole':
      return [];
    case 'tool': {
      const delta = part.input === undefined ? part.json.join('') : written(part.input);
      return [toolDelta(messageId, part, delta)];
    }
    default: {
      const delta = part.deltas.join('');
      return delta === '' ? [] : [{ messageId, kind: part.type, delta }];
    }
  }
};

const seal = (
  part: Part | undefined,
  { signature, redacted }: Extract<ModelChunk, { type: 'thinking' }>,
): void => {
  if (part?.type !== 'thinking') return;
  if (signature !== undefined) part.signature = signature;
  if (redacted !== undefined) part.redacted = redacted;
};

const toBlock = (part: Part): readonly AssistantBlock[] => {
  switch (part.type) {
    case 'whole':
      return [part.block];
    case 'tool':
      return [toToolCall(part)];
    case 'text': {
      const text = part.deltas.join('');
      return text === '' ? [] : [textBlock(text)];
    }
    case 'thinking': {
      const { deltas, signature, redacted } = part;
      const text = deltas.join('');
      if (text === '' && signature === undefined) return [];
      return [{ type: 'thinking', text, ...defined({ signature, redacted }) }];
    }
  }
};

/** Updates a usage: later values of the provider replace earlier ones, field by field. */
export const updatedUsage = (usage: Usage, update: Partial<Usage>): Usage => ({
  ...usage,
  ...defined(update),
});

/** Reports that a message is discarded. */
export const discard = (
  { hooks }: Pick<Context, 'hooks'>,
  iteration: number,
  { id: messageId, content }: AssistantMessage,
  why: string,
  isShown = content.length > 0,
): void => {
  if (isShown) hooks.report(iteration, { type: 'messageDiscarded', messageId, why });
};

export const discardUnlessKept = <AnyRun extends Run>(
  context: Pick<Context, 'hooks'>,
  run: AnyRun,
  message: AssistantMessage,
): AnyRun => {
  if (hasEnded(run) && run.answer.id !== message.id) {
    discard(context, run.iteration, message, run.status);
  }
  return run;
};
