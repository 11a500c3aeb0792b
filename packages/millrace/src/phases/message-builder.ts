import type { MessageChunk, StopChunk } from '../models/chunk-transform.js';
import type { Context } from '../seams/layer.js';
import type { ChunkOf } from '../events.js';
import type {
  AssistantBlock,
  AssistantMessage,
  Citation,
  ContentBlock,
  Finish,
  TextBlock,
  VendorBlock,
  VendorData,
  VendorFacts,
} from '../values/message.js';
import { frozen, separatorOf } from '../values/message.js';
import type { Malformed, ModelChunk } from '../models/model.js';
import { type MillraceError, misuse } from '../values/errors.js';
import { defined } from '../values/json.js';
import { hasEnded, type Run } from '../run.js';
import type { ToolPart, ToolParts, ToolCallChunk } from '../models/tool-parts.js';
import { createToolParts, toToolCalls, written } from '../models/tool-parts.js';
import { addUsage, countsIn, noUsage, type Usage } from '../values/usage.js';

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
  /** Whether the content has any delta. */
  isShown(): boolean;
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

interface TextPart extends Pick<TextBlock, 'separate' | 'phase'> {
  readonly type: 'text' | 'thinking';
  readonly deltas: string[];
  readonly citations: Citation[];
  signature?: string;
  redacted?: boolean;
  vendorData?: VendorData;
  /** The text that follows is another block. */
  isClosed?: boolean;
}

interface WholePart {
  readonly type: 'whole';
  readonly block: ContentBlock | VendorBlock;
}

type ContentPart = TextPart | ToolPart | WholePart;

interface Attempt {
  readonly parts: ContentPart[];
  readonly tools: ToolParts;
}

export const createMessageBuilder = ({
  messageId,
  name,
  iteration,
  isTaken,
}: DraftInit): MessageBuilder => {
  const begin = (kept: readonly ContentPart[]): Attempt => ({
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
  let paused: readonly ContentPart[] = [];
  /** Whether the next text follows something other than text in an earlier response, so it is a message of its own. */
  let isApart = false;
  let response = 1;
  let earlier = noUsage;
  let latest = noUsage;
  let earlierFacts: VendorFacts | undefined;
  let facts: VendorFacts | undefined;
  /** The message of all chunks so far: its text is joined, and the arguments of its tool calls are parsed, one time. */
  let made: AssistantMessage | undefined;

  /** Continues with another response, or with the same one, whose usage counts once. */
  const nextResponse = (isSameRequest = false): void => {
    response += 1;
    builder.finish = undefined;
    if (isSameRequest) return;
    earlier = builder.usage;
    latest = noUsage;
    facts = undefined;
  };
  const openPart = (kind: TextPart['type']): TextPart => {
    const last = attempt.parts.at(-1);
    if (last?.type === kind && last.isClosed !== true) return last;
    const isSeparate = kind === 'text' && isApart && tailOf(attempt.parts) !== '';
    const part = { type: kind, deltas: [], citations: [], ...(isSeparate && { separate: true }) };
    if (kind === 'text') isApart = false;
    attempt.parts.push(part);
    return part;
  };
  const addText = (chunk: Extract<ModelChunk, { type: TextPart['type'] }>): ChunkOf | undefined => {
    if ('isDamaged' in chunk && chunk.text === '') return undefined;
    const part = openPart(chunk.type);
    const { parts } = attempt;
    const before = part.separate === true && hasNoText(part) ? tailOf(parts) : '';
    part.deltas.push(chunk.text);
    seal(part, chunk);
    return textDelta(builder.messageId, part, chunk.text, before);
  };
  const startText = ({ separate, phase, vendorData }: ChunkOfType<'textStart'>): void => {
    const { parts } = attempt;
    const last = parts.at(-1);
    if (last?.type === 'text' && isBlank(last) && last.vendorData === undefined) parts.pop();
    const start = defined({ separate, phase, vendorData });
    parts.push({ type: 'text', deltas: [], citations: [], ...start });
  };
  const addCitation = ({ citation }: ChunkOfType<'citation'>): ChunkOf => {
    const isText = (part: ContentPart): part is TextPart => part.type === 'text';
    const part = attempt.parts.findLast(isText) ?? openPart('text');
    part.citations.push(frozen(citation));
    return citationDelta(builder.messageId, citation);
  };

  const addToolCall = (chunk: ToolCallChunk): ChunkOf | undefined => {
    const { part, isNew } = attempt.tools.add(chunk, response);
    if (isNew) attempt.parts.push(part);
    const delta = chunk.json ?? (chunk.input === undefined ? '' : written(chunk.input));
    return part.isAgain === true ? undefined : toolDelta(builder.messageId, part, delta);
  };

  const add = (chunk: MessageChunk): ChunkOf | undefined => {
    switch (chunk.type) {
      case 'text':
      case 'thinking':
        return addText(chunk);
      case 'textStart':
        startText(chunk);
        return;
      case 'citation':
        return addCitation(chunk);
      case 'toolCall':
        return addToolCall(chunk);
      case 'block':
        attempt.parts.push({ type: 'whole', block: frozen(chunk.block) });
        return blockDelta(builder.messageId, chunk.block);
      case 'facts':
        facts = facts === undefined ? defined(chunk.facts) : { ...facts, ...defined(chunk.facts) };
        return;
      case 'usage':
        latest = countsIn(updatedUsage(latest, chunk.usage)).usage;
        builder.usage = addUsage(earlier, latest);
        return;
      case 'restart':
        nextResponse(chunk.isSameRequest);
        attempts += 1;
        attempt = begin(paused);
        isApart = continuesApart(paused);
        builder.messageId = `${messageId}#${attempts}`;
        builder.malformed = undefined;
        builder.halt = undefined;
        return;
      case 'malformed':
        builder.malformed = chunk;
        return;
      case 'finish':
        if (!finishes.includes(chunk.finish)) throw unknownIn('finish', chunk.finish, finishes);
        builder.finish = chunk.finish;
        return;
      case 'stop':
        builder.finish = 'stop';
        builder.halt = chunk;
        return;
      default:
        throw unknownIn('type', Reflect.get(chunk, 'type'), chunkTypes);
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
      made = undefined;
      earlierFacts = joinedFacts(earlierFacts, facts);
      nextResponse();
      paused = copies(attempt.parts);
      isApart = continuesApart(paused);
    },
    isShown: () => attempt.parts.some((part) => !('deltas' in part) || !isBlank(part)),
    deltas: () =>
      attempt.parts.flatMap((part, index, parts) =>
        wholeDeltas(builder.messageId, part, () => tailOf(parts.slice(0, index))),
      ),
    message: () => {
      if (made !== undefined) return made;
      const vendor = joinedFacts(earlierFacts, facts);
      const calls = toToolCalls(attempt.parts.filter((part) => part.type === 'tool'));
      return (made = {
        id: builder.messageId,
        role: 'assistant',
        name,
        // Tool calls of a truncated message may be incomplete.
        content: attempt.parts
          .filter(({ type }) => builder.halt === undefined || type !== 'tool')
          .flatMap((part) => toBlock(part, calls)),
        ...(vendor === undefined ? {} : { vendor }),
      });
    },
    add: (chunk) => {
      made = undefined;
      // After the stop of an interceptor, only usage, facts and another attempt count.
      return builder.halt === undefined || afterStop.has(chunk.type) ? add(chunk) : undefined;
    },
  };
  return builder;
};

const finishes: readonly unknown[] = ['stop', 'length', 'refusal', 'filtered', 'pause'];

const chunkTypes: readonly ModelChunk['type'][] = [
  ...(['text', 'textStart', 'thinking', 'citation', 'block', 'toolCall'] as const),
  ...(['usage', 'facts', 'restart', 'malformed', 'finish'] as const),
];

const unknownIn = (field: string, value: unknown, known: readonly unknown[]): MillraceError =>
  misuse(
    `A chunk of a model has the ${field} ${typeof value === 'string' ? `'${value}'` : String(value)}. Use one of: ${known.join(', ')}.`,
  );

const afterStop: ReadonlySet<MessageChunk['type']> = new Set(['usage', 'facts', 'restart']);

const continuesApart = (parts: readonly ContentPart[]): boolean =>
  parts.length > 0 && parts.at(-1)?.type !== 'text';

/** Text grows in place. */
const copies = (parts: readonly ContentPart[]): ContentPart[] =>
  parts.map((part) =>
    'deltas' in part ? { ...part, deltas: [...part.deltas], citations: [...part.citations] } : part,
  );

const hasNoText = ({ deltas }: TextPart): boolean => deltas.every((delta) => delta === '');

const isBlank = (part: TextPart): boolean => part.citations.length === 0 && hasNoText(part);

/** The last two characters of the text so far, as `textOf` joins it. */
const tailOf = (parts: readonly ContentPart[]): string => {
  let tail = '';
  let isSeparated = false;
  for (let at = parts.length - 1; at >= 0 && tail.length < 2; at -= 1) {
    const { text, separate } = textOfPart(parts[at]);
    if (text === '') continue;
    tail = (isSeparated ? '\n' : text) + tail;
    isSeparated = separate === true;
  }
  return tail.slice(-2);
};

const textOfPart = (part: ContentPart | undefined): Pick<TextBlock, 'text' | 'separate'> => {
  if (part?.type === 'text') return { ...part, text: part.deltas.join('') };
  return part?.type === 'whole' && part.block.type === 'text' ? part.block : { text: '' };
};

const textDelta = (
  messageId: string,
  part: TextPart,
  text: string,
  before: string,
): ChunkOf | undefined => {
  const { type: kind, phase } = part;
  if (text === '') return undefined;
  const delta = separatorOf(before, part) + text;
  return phase === undefined
    ? { messageId, kind, delta }
    : { messageId, kind, delta, textPhase: phase };
};

const citationDelta = (messageId: string, citation: Citation): ChunkOf => ({
  messageId,
  kind: 'citation',
  delta: '',
  citation,
});

const blockDelta = (messageId: string, block: WholePart['block']): ChunkOf => ({
  messageId,
  kind: 'block',
  delta: '',
  block,
});

const toolDelta = (messageId: string, part: ToolPart, delta: string): ChunkOf => {
  const { index, id, name } = part;
  if (part.shown?.name !== name) part.shown = Object.freeze({ index, id, name });
  return { messageId, kind: 'toolInput', delta, toolCall: part.shown };
};

const wholeDeltas = (
  messageId: string,
  part: ContentPart,
  before: () => string,
): readonly ChunkOf[] => {
  switch (part.type) {
    case 'whole':
      return [blockDelta(messageId, part.block)];
    case 'tool': {
      if (part.isAgain === true) return [];
      const delta = part.input === undefined ? part.json.join('') : written(part.input);
      return [toolDelta(messageId, part, delta)];
    }
    default: {
      const text = part.deltas.join('');
      const delta = textDelta(messageId, part, text, part.separate === true ? before() : '');
      return [
        ...(delta === undefined ? [] : [delta]),
        ...part.citations.map((citation) => citationDelta(messageId, citation)),
      ];
    }
  }
};

type ChunkOfType<Type extends ModelChunk['type']> = Extract<ModelChunk, { readonly type: Type }>;

const seal = (part: TextPart, chunk: ChunkOfType<TextPart['type']>): void => {
  const { vendorData } = chunk;
  const { signature, redacted } = chunk.type === 'thinking' ? chunk : {};
  if (signature !== undefined) part.signature = signature;
  if (redacted !== undefined) part.redacted = redacted;
  if (vendorData !== undefined) part.vendorData = vendorData;
  if ((signature ?? vendorData) !== undefined) part.isClosed = true;
};

const toBlock = (
  part: ContentPart,
  calls: ReturnType<typeof toToolCalls>,
): readonly AssistantBlock[] => {
  switch (part.type) {
    case 'whole':
      return [part.block];
    case 'tool':
      return [calls.get(part) ?? []].flat();
    case 'text': {
      const { deltas, separate, phase, vendorData } = part;
      const text = deltas.join('');
      const citations = part.citations.length === 0 ? {} : { citations: [...part.citations] };
      if (isBlank(part) && vendorData === undefined) return [];
      return [{ type: 'text', text, ...citations, ...defined({ separate, phase, vendorData }) }];
    }
    case 'thinking': {
      const { deltas, signature, redacted, vendorData } = part;
      const text = deltas.join('');
      if (text === '' && (signature ?? vendorData) === undefined) return [];
      return [{ type: 'thinking', text, ...defined({ signature, redacted, vendorData }) }];
    }
  }
};

/** Joins what a vendor reports about the responses of one message: counts add up, anything else is of the last one. */
const joinedFacts = (
  before: VendorFacts | undefined,
  after: VendorFacts | undefined,
): VendorFacts | undefined => {
  if (before === undefined || after === undefined) return after ?? before;
  const both = [before, after] as const;
  const reasoningTokens = both.map((facts) => facts.reasoningTokens).reduce(joinedCount);
  const cacheWrites = both.map((facts) => facts.cacheWrites).reduce(joinedCounts);
  const toolUses = both.map((facts) => facts.toolUses).reduce(joinedCounts);
  return {
    ...before,
    ...after,
    ...(reasoningTokens === undefined ? {} : { reasoningTokens }),
    ...(cacheWrites === undefined ? {} : { cacheWrites }),
    ...(toolUses === undefined ? {} : { toolUses }),
  };
};

const joinedCount = (before: number | undefined, after: number | undefined): number | undefined =>
  before === undefined || after === undefined ? (after ?? before) : before + after;

type Counts = Readonly<Record<string, number>> | undefined;

const joinedCounts = (before: Counts, after: Counts): Counts =>
  before === undefined || after === undefined
    ? (after ?? before)
    : Object.fromEntries(
        [...new Set([...Object.keys(before), ...Object.keys(after)])].map((key) => [
          key,
          joinedCount(before[key], after[key]) ?? 0,
        ]),
      );

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
