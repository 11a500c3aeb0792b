import { isRecord } from './json.js';
import {
  type AssistantBlock,
  type AssistantMessage,
  textBlock,
  type ToolUseBlock,
} from './message.js';
import type { Finish, ModelChunk } from './model.js';
import { addUsage, noUsage, type Usage } from './usage.js';

/** What a chunk adds to the message that subscribers see grow. */
export interface DraftDelta {
  readonly messageId: string;
  readonly kind: 'text' | 'thinking' | 'toolInput';
  readonly delta: string;
  readonly toolUse?: { readonly index: number; readonly id: string; readonly name: string };
}

/** A message that is being received. It belongs to one request, and to nobody else. */
export interface Draft {
  readonly messageId: string;
  readonly finish: Finish | 'pause' | undefined;
  /** What to tell the model, when its text could not be read. */
  readonly malformed: string | undefined;
  readonly usage: Usage;
  /** Takes the next chunk in, and tells what it added; nothing, where there is nothing to show. */
  add(chunk: ModelChunk): DraftDelta | undefined;
  /** Goes on with the same message in another response, after a pause. */
  resume(): void;
  /** The message as far as it has come. */
  message(): AssistantMessage;
}

/** What a draft needs to name things. */
export interface DraftInit {
  readonly messageId: string;
  /** The agent that speaks. */
  readonly name: string;
  readonly iteration: number;
  /** Tells whether the conversation has a tool use of this id already. */
  readonly isTaken: (toolUseId: string) => boolean;
}

interface TextPart {
  readonly type: 'text' | 'thinking';
  readonly deltas: string[];
  signature?: string;
  redacted?: boolean;
}

interface ToolPart {
  readonly type: 'tool';
  readonly id: string;
  /** Its place among the tool uses of the message. */
  readonly index: number;
  /** How the model told it from the others. */
  readonly key: Pick<ToolUseChunk, 'index' | 'id'> & { readonly response: number };
  readonly json: string[];
  name: string;
  input?: unknown;
}

interface WholePart {
  readonly type: 'whole';
  readonly block: AssistantBlock;
}

type Part = TextPart | ToolPart | WholePart;
type ToolUseChunk = Extract<ModelChunk, { type: 'toolUse' }>;

/** Begins a message. */
export const createDraft = ({ messageId: firstId, name, iteration, isTaken }: DraftInit): Draft => {
  let messageId = firstId;
  let attempt = 1;
  let response = 1;
  let parts: Part[] = [];
  let earlier = noUsage;
  let usage = noUsage;
  let finish: Finish | 'pause' | undefined;
  let malformed: string | undefined;

  const beginResponse = (): void => {
    response += 1;
    earlier = addUsage(earlier, usage);
    usage = noUsage;
    finish = undefined;
  };

  const addText = (type: TextPart['type'], text: string): DraftDelta | undefined => {
    const last = parts.at(-1);
    const open = last?.type === type && last.signature === undefined ? last : undefined;
    if (open === undefined) parts.push({ type, deltas: [text] });
    else open.deltas.push(text);
    return text === '' ? undefined : { messageId, kind: type, delta: text };
  };

  const tools = (): readonly ToolPart[] => parts.filter((part) => part.type === 'tool');

  const addToolUse = (chunk: ToolUseChunk): DraftDelta => {
    const part = tools().findLast((tool) => belongs(tool, chunk, response)) ?? beginTool(chunk);
    part.name ||= chunk.name ?? '';
    if (chunk.json !== undefined) part.json.push(chunk.json);
    if (chunk.input !== undefined) part.input = chunk.input;
    const delta = chunk.json ?? (chunk.input === undefined ? '' : JSON.stringify(chunk.input));
    const { index, id } = part;
    return {
      messageId,
      kind: 'toolInput',
      delta,
      toolUse: Object.freeze({ index, id, name: part.name }),
    };
  };

  const beginTool = (chunk: ToolUseChunk): ToolPart => {
    const { index, name = '' } = chunk;
    const given = idOf(chunk);
    const others = tools();
    const taken = (candidate: string) =>
      isTaken(candidate) || others.some((other) => other.id === candidate);
    const part: ToolPart = {
      type: 'tool',
      id: freeId(given ?? `call_${iteration}_${others.length}`, taken),
      index: others.length,
      key: {
        response,
        ...(index === undefined ? {} : { index }),
        ...(given === undefined ? {} : { id: given }),
      },
      json: [],
      name,
    };
    parts.push(part);
    return part;
  };

  return {
    get messageId() {
      return messageId;
    },
    get finish() {
      return finish;
    },
    get malformed() {
      return malformed;
    },
    get usage() {
      return addUsage(earlier, usage);
    },
    resume: beginResponse,
    message: () => ({ id: messageId, role: 'assistant', name, content: parts.flatMap(toBlock) }),
    add: (chunk) => {
      if (finish !== undefined && chunk.type !== 'usage' && chunk.type !== 'restart') return;
      switch (chunk.type) {
        case 'text':
          return addText('text', chunk.text);
        case 'thinking': {
          const delta = addText('thinking', chunk.text);
          seal(parts.at(-1), chunk);
          return delta;
        }
        case 'toolUse':
          return addToolUse(chunk);
        case 'block':
          parts.push({ type: 'whole', block: chunk.block });
          return;
        case 'usage':
          usage = { ...usage, ...chunk.usage };
          return;
        case 'restart':
          beginResponse();
          attempt += 1;
          messageId = `${firstId}#${attempt}`;
          parts = [];
          malformed = undefined;
          return;
        case 'malformed':
          malformed = chunk.feedback;
          return;
        case 'finish':
          finish = chunk.finish;
          return;
      }
    },
  };
};

/** Some vendors send an empty id with every piece but the first. */
const idOf = ({ id }: ToolUseChunk): string | undefined => (id === '' ? undefined : id);

const seal = (
  part: Part | undefined,
  { signature, redacted }: Extract<ModelChunk, { type: 'thinking' }>,
): void => {
  if (part?.type !== 'thinking') return;
  if (signature !== undefined) part.signature = signature;
  if (redacted !== undefined) part.redacted = redacted;
};

/** Tells whether a piece goes on with a tool use: by id and index as far as both say them, else as the unnamed rest of the last one. */
const belongs = ({ key, name, input, json }: ToolPart, chunk: ToolUseChunk, response: number) => {
  const id = idOf(chunk);
  if (key.response !== response) return false;
  if (id !== undefined && key.id !== undefined && id !== key.id) return false;
  if (chunk.index !== undefined && key.index !== undefined && chunk.index !== key.index)
    return false;
  if (chunk.name !== undefined && (input !== undefined || (name !== chunk.name && name !== ''))) {
    return false;
  }
  const told = (id ?? chunk.index) !== undefined;
  return told || chunk.name === undefined || (name === '' && json.length === 0);
};

const freeId = (wanted: string, isTaken: (id: string) => boolean): string => {
  let id = wanted;
  for (let copy = 2; isTaken(id); copy += 1) id = `${wanted}_${copy}`;
  return id;
};

const toBlock = (part: Part): readonly AssistantBlock[] => {
  switch (part.type) {
    case 'whole':
      return [part.block];
    case 'tool':
      return [toToolUse(part)];
    case 'text': {
      const text = part.deltas.join('');
      return text === '' ? [] : [textBlock(text)];
    }
    case 'thinking': {
      const { deltas, signature, redacted } = part;
      const text = deltas.join('');
      if (text === '' && signature === undefined) return [];
      return [
        {
          type: 'thinking',
          text,
          ...(signature === undefined ? {} : { signature }),
          ...(redacted === undefined ? {} : { redacted }),
        },
      ];
    }
  }
};

const toToolUse = ({ id, name, input, json }: ToolPart): ToolUseBlock => {
  const text = json.join('');
  const value = input ?? (text.trim() === '' ? {} : parsed(text));
  return isRecord(value)
    ? { type: 'tool_use', id, name, input: value }
    : { type: 'tool_use', id, name, input: {}, invalidInput: text || JSON.stringify(value) };
};

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};
