// The conversation of a run, as it was at any position of its log.
import type { Mark, ShownEvent } from '../protocol.js';
import { withoutKeys } from '../secrets.js';
import { type ChunkStream, type Fold, textUntil } from './log.js';
import {
  anyFields,
  errorIn,
  fieldsOf,
  messagesIn,
  stepOfMessage,
  stringOf,
  textIn,
  toolCallIn,
  toolCallsIn,
} from './read-event.js';
import { countUpTo } from './text.js';

/** A part of a conversation. Later entries of the log complete it: each of those has its position. */
export type Part = {
  readonly key: string;
  /** The entry that began it. */
  readonly position: number;
  readonly callId: string;
  readonly agent: string;
  /** How many calls are above its call. */
  readonly depth: number;
  /** The entry that a breakpoint, an interceptor or a fork has edited. */
  edited?: number;
} & (
  | { readonly type: 'input'; readonly text: string }
  | { readonly type: 'steered'; readonly text: string }
  | {
      readonly type: 'notice';
      readonly tone: 'plain' | 'bad' | 'good';
      readonly text: string;
      /** The error that it is about. */
      readonly error: unknown;
    }
  | MessagePart
  | ToolPart
);

export interface MessagePart {
  readonly type: 'message';
  /** The id of its step. */
  readonly step: string | undefined;
  text: ChunkStream | undefined;
  thinking: ChunkStream | undefined;
  /** The text of the complete message, which interceptors may have edited. */
  final: { readonly position: number; readonly text: string } | undefined;
  discarded: { readonly position: number; readonly why: string } | undefined;
}

export interface ToolPart {
  readonly type: 'tool';
  readonly toolCallId: string;
  readonly name: string;
  /** The arguments, as they are streamed. */
  streamed: ChunkStream | undefined;
  input: { readonly position: number; readonly value: unknown } | undefined;
  /** The id of its step. */
  step: string | undefined;
  begun: number | undefined;
  progress: number[];
  result:
    | {
        readonly position: number;
        readonly text: string;
        readonly isError: boolean;
        readonly ms: number;
        /** The error that the tool threw, unless the log is one of a store. */
        readonly error: unknown;
      }
    | undefined;
  vetoed: number | undefined;
}

export interface Conversation extends Fold {
  readonly parts: readonly Part[];
  /** How many parts there are at a position. */
  countAt(position: number): number;
}

export const createConversation = (): Conversation => {
  const list = createPartList();
  const edits = createEdits();
  return {
    parts: list.parts,
    countAt: (position) => countUpTo(list.positions, position - 1),
    event: (event, _at, position) => {
      addEvent(list, event, position);
      if (edits.take(event)) markEdited(list.parts, position);
    },
    mark: edits.mark,
    chunks: (stream, from) => {
      addChunks(list, stream, from);
    },
  };
};

type PartList = ReturnType<typeof createPartList>;

/** The parts in their order, and the messages and tools among them by their ids. */
const createPartList = () => {
  const parts: Part[] = [];
  const positions: number[] = [];
  const messages = new Map<string, MessagePart>();
  const tools = new Map<string, ToolPart>();
  const add = <P extends object>(event: Head, position: number, key: string, part: P) => {
    const { callId, agent } = event;
    const depth = Math.max(0, agent.length - 1);
    positions.push(position);
    return { key, position, callId, agent: agent.at(-1) ?? '', depth, ...part };
  };
  const messageOf = (event: Head, id: string, position: number): MessagePart => {
    const key = `${event.callId} ${id}`;
    const known = messages.get(key);
    if (known !== undefined) return known;
    const step = stepOfMessage(event.callId, id);
    const part = add(event, position, key, { ...newMessage, step });
    parts.push(part);
    messages.set(key, part);
    return part;
  };
  const toolOf = (event: Head, id: string, name: string, position: number): ToolPart => {
    const key = `${event.callId} tool ${id}`;
    const known = tools.get(key);
    if (known !== undefined) return known;
    const part = add(event, position, key, { ...newTool, progress: [], toolCallId: id, name });
    parts.push(part);
    tools.set(key, part);
    return part;
  };
  const note = (event: ShownEvent, position: number, tone: Tone, text: string): void => {
    const { error } = anyFields(event);
    parts.push(add(event, position, `${position}`, { type: 'notice' as const, tone, text, error }));
  };
  return { parts, positions, add, messageOf, toolOf, note };
};

const addEvent = (list: PartList, event: ShownEvent, position: number): void => {
  switch (event.type) {
    case 'preCall':
      messagesIn(event.input).forEach((message, index) => {
        const part = { type: 'input' as const, text: textIn(message) };
        list.parts.push(list.add(event, position, `${position} ${index}`, part));
      });
      return;
    case 'postReasoning':
    case 'postSummary':
    case 'postPlanning':
      onAnswer(list, event, position);
      return;
    case 'messageDiscarded': {
      const { messageId, why } = event;
      list.messageOf(event, messageId, position).discarded = { position, why };
      return;
    }
    case 'preActing':
    case 'actingChunk':
    case 'postActing':
      onTool(list, event, position);
      return;
    default:
      onOther(list, event, position);
  }
};

const onAnswer = (list: PartList, event: ShownEvent, position: number): void => {
  const { message: given } = anyFields(event);
  const id = stringOf(fieldsOf(given)['id']);
  const message = list.messageOf(event, id, position);
  message.final = { position, text: textIn(given) };
  toolCallsIn(given).forEach((toolCall, index) => {
    const tool = list.toolOf(event, toolCall.id, toolCall.name, position);
    tool.input ??= { position, value: toolCall.input };
    tool.step ??= message.step === undefined ? undefined : `${message.step}/${index}`;
  });
};

const onTool = (list: PartList, event: ToolEvent, position: number): void => {
  const { id, name, input } = toolCallIn(event.toolCall);
  const tool = list.toolOf(event, id, name, position);
  if (event.type === 'actingChunk') tool.progress.push(position);
  else if (event.type === 'preActing') {
    tool.begun ??= position;
    tool.input = { position: tool.input?.position ?? position, value: input };
  } else {
    const { isError } = event.result;
    const { error } = anyFields(event);
    const text = textIn(event.result);
    const { ms } = event;
    tool.result = { position, text: isError ? withoutKeys(text) : text, isError, ms, error };
  }
};

const onOther = (list: PartList, event: ShownEvent, position: number): void => {
  const { type, message, toolCallId } = anyFields(event);
  if (type === 'steered') {
    const part = { type: 'steered' as const, text: textIn(message) };
    list.parts.push(list.add(event, position, `${position}`, part));
  } else if (type === 'vetoed' && typeof toolCallId === 'string') {
    list.toolOf(event, toolCallId, toolCallId, position).vetoed = position;
  } else {
    const notice = noticeOf(event);
    if (notice !== undefined) list.note(event, position, ...notice);
  }
};

const addChunks = (list: PartList, stream: ChunkStream, from: number): void => {
  const { head, positions: at } = stream;
  const position = at[from] ?? 0;
  if (head.kind === 'toolInput') {
    const { id = '', name = '' } = head.toolCall ?? {};
    // A message comes before its tool calls, also if its text is only known at its end, or edited.
    list.messageOf(head, head.messageId, position);
    list.toolOf(head, id, name, position).streamed = stream;
  } else list.messageOf(head, head.messageId, position)[head.kind] = stream;
};

/** Marks of edits come before their events. */
const createEdits = () => {
  const awaited = new Set<string>();
  const keyOf = (callId: string, of: string, toolCallId?: string): string =>
    `${callId} ${of} ${toolCallId ?? ''}`;
  return {
    mark: (mark: Mark): void => {
      if (mark.mark === 'hold' && mark.phase === 'edited') awaited.add(keyOf(mark.callId, mark.of));
      if (mark.mark !== 'interceptors') return;
      const { callId, of, toolCallId, phase, isEdited } = mark;
      // A hold does not know its tool call; the interceptors after it do.
      const isHeld = phase === 'started' && awaited.delete(keyOf(callId, of));
      if (isHeld || isEdited === true) awaited.add(keyOf(callId, of, toolCallId));
    },
    take: (event: ShownEvent): boolean => {
      if (awaited.size === 0) return false;
      const { id } = toolCallIn(anyFields(event)['toolCall']);
      return [undefined, id].some((it) => awaited.delete(keyOf(event.callId, event.type, it)));
    },
  };
};

/** Marks the parts that an entry has begun or completed. */
export const markEdited = (parts: readonly Part[], position: number): void => {
  for (const part of parts) {
    const at =
      part.type === 'message'
        ? [part.final?.position]
        : part.type === 'tool'
          ? [part.begun, part.result?.position]
          : [part.position];
    if (at.includes(position)) part.edited = position;
  }
};

interface Head {
  readonly callId: string;
  readonly agent: readonly string[];
}

type Tone = 'plain' | 'bad' | 'good';

type ToolEvent = Extract<ShownEvent, { type: 'preActing' | 'actingChunk' | 'postActing' }>;

const newMessage = {
  type: 'message' as const,
  ...{ text: undefined, thinking: undefined, final: undefined, discarded: undefined },
};

const newTool = {
  type: 'tool' as const,
  ...{ streamed: undefined, input: undefined, step: undefined, begun: undefined },
  ...{ result: undefined, vetoed: undefined },
};

const noticeOf = (event: ShownEvent): readonly [Tone, string] | undefined => {
  const fields = anyFields(event);
  const tool = (): string => toolCallIn(fields['toolCall']).name;
  switch (fields['type']) {
    case 'postCall': {
      const reason = stringOf(fieldsOf(fields['reply'])['reason']);
      return [reason === 'answer' ? 'good' : 'plain', `Ended: ${reason}`];
    }
    case 'error': {
      const { code, message } = errorIn(fields['error']);
      return ['bad', `Failed: ${code}. ${message}`];
    }
    case 'modelRetry': {
      const { attempt, attempts, waitMs, error } = fields;
      const { message } = errorIn(error);
      return [
        'bad',
        `Attempt ${String(attempt)} of ${String(attempts)} failed: ${message} Next in ${String(waitMs)} ms.`,
      ];
    }
    case 'modelFallback':
      return [
        'bad',
        `Fallback from ${stringOf(fields['from'])} to ${stringOf(fields['to'])}: ${errorIn(fields['error']).message}`,
      ];
    case 'suspended':
      return ['plain', `${tool()} is suspended until its result arrives.`];
    case 'approvalRequested':
      return ['plain', `Approval requested: ${tool()}`];
    case 'approvalDecided':
      return [
        'plain',
        `${tool()}: ${fields['approved'] === true ? 'approved' : 'denied'}. ${stringOf(fields['reason'])}`,
      ];
    case 'warning':
      return ['bad', `Warning: ${stringOf(fields['message'])}`];
    case 'handlerError':
      return [
        'bad',
        `Interceptor ${stringOf(fields['name'])} failed: ${errorIn(fields['error']).message}`,
      ];
    case 'vetoed':
      return ['bad', `${stringOf(fields['name'])} vetoed ${stringOf(fields['of'])}.`];
    case 'stepReplayed':
      return ['plain', `Step ${stringOf(fields['step'])} is replayed.`];
    default:
      return undefined;
  }
};

/** A message or the arguments of a tool call, as they were at a position. */
export interface TextAt {
  readonly length: number;
  readonly slice: (from: number, to?: number) => string;
}

const textAt = (stream: ChunkStream | undefined, position: number): TextAt => {
  if (stream === undefined) return '';
  const length = textUntil(stream, position);
  return { length, slice: (from, to = length) => stream.text.slice(from, Math.min(to, length)) };
};

/** The texts of a message before a position. */
export const messageAt = (message: MessagePart & Pick<Part, 'edited'>, position: number) => {
  const { text, thinking, final, discarded, edited } = message;
  const isComplete = final !== undefined && final.position < position;
  return {
    text:
      isComplete && (edited !== undefined || final.text.length !== text?.text.length)
        ? final.text
        : textAt(text, position),
    thinking: textAt(thinking, position),
    isComplete,
    discarded: discarded !== undefined && discarded.position < position ? discarded.why : undefined,
  };
};

export type ToolStatus = 'streaming' | 'waiting' | 'running' | 'done' | 'failed' | 'vetoed';

/** A tool call before a position. */
export const toolAt = (tool: ToolPart, position: number) => {
  const isBefore = (at: number | undefined): boolean => at !== undefined && at < position;
  const result = isBefore(tool.result?.position) ? tool.result : undefined;
  const input = isBefore(tool.input?.position) ? tool.input : undefined;
  return {
    input: input === undefined ? textAt(tool.streamed, position) : shown(input.value),
    progress: countUpTo(tool.progress, position - 1),
    result,
    status: statusOf(),
  };

  function statusOf(): ToolStatus {
    if (isBefore(tool.vetoed)) return 'vetoed';
    if (result !== undefined) return result.isError ? 'failed' : 'done';
    if (isBefore(tool.begun)) return 'running';
    return input === undefined ? 'streaming' : 'waiting';
  }
};

const shown = (value: unknown): string =>
  value === undefined ? '' : JSON.stringify(value, null, 1).replaceAll(/\n\s*/gu, ' ');
