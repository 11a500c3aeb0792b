import { type Finish, MillraceError, type ModelChunk } from 'millrace';
import { isRecord } from 'millrace/values';
import {
  at,
  blockIndex,
  type JsonRecord,
  listAt,
  missingCall,
  type Reader,
  signatureChunks,
  textAt,
  textChunks,
} from '@millrace/wire';
import { createAnswerReports, usageChunks } from './answer-facts.js';
import {
  argumentsOf,
  citationChunks,
  endChunks,
  merged,
  type OpenBlock,
  openBlock,
  startChunks,
} from './open-block.js';
import { isOpaque, vendor } from './vendor-block.js';

type Chunks = readonly ModelChunk[];

/** Finishes by stop reason. Any other reason, even an unknown one, means that the answer is complete. */
const finishes: ReadonlyMap<unknown, Finish | 'pause'> = new Map([
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['refusal', 'refusal'],
  ['pause_turn', 'pause'],
  ['compaction', 'pause'],
]);

/**
 * Creates the reader of one answer of the Messages API. It ignores unknown events, and keeps unknown blocks and the
 * fields of unknown deltas. Only deltas and the stop reason must arrive: `ping`, starts, stops and repeated events are
 * redundant, except for the start of a tool call or of a block that only Anthropic understands. Throws
 * `invalidResponse` for a delta without its block.
 *
 * Some servers send content in `message_start`, which is read like streamed content. `toolNameOf` maps tool names back.
 */
export const createMessagesReader = (toolNameOf: (wireName: string) => string): Reader => {
  let answer = createAnswer(toolNameOf);
  let messageId = '';
  const read = (data: unknown): Chunks => {
    if (at(data, 'type') !== 'message_start') return answer.read(data);
    const id = textAt(data, 'message', 'id');
    const isOther = id !== '' && messageId !== '' && id !== messageId;
    messageId = id || messageId;
    if (!isOther) return answer.read(data);
    // A server that fails in the middle may start another message in the same stream.
    answer = createAnswer(toolNameOf);
    return [restart, ...answer.read(data)];
  };
  return {
    read: ({ data }) => read(data),
    // A non-streaming answer is a `message_start` with all content.
    readWhole: (message) =>
      Array.isArray(at(message, 'content'))
        ? [...read({ type: 'message_start', message }), ...read({ type: 'message_stop' })]
        : [],
    usage: usageChunks,
    isLast: ({ data }) => at(data, 'type') === 'message_stop',
    working: () => answer.working(),
  };
};

const restart: ModelChunk = {
  type: 'restart',
  why: 'The vendor started another message.',
  isSameRequest: true,
};

/** The reader of one message. */
const createAnswer = (toolNameOf: (wireName: string) => string) => {
  const reports = createAnswerReports();
  const blocks = createBlocks(toolNameOf);
  const startContent = createStartContent(blocks);
  /** The stop reason in `message_start`, which counts if no other one follows. */
  let startReason: unknown;
  let isFinished = false;

  const finish = (reason: unknown): Chunks => {
    if (typeof reason !== 'string') return [];
    isFinished = true;
    const mapped = finishes.get(reason) ?? 'stop';
    // An answer with calls of your tools cannot be continued before they have results.
    const isOver = mapped === 'pause' && blocks.haveCalls();
    const missing = reason === 'tool_use' && !blocks.haveAny() ? [missingCall] : [];
    return [...blocks.close(), ...missing, { type: 'finish', finish: isOver ? 'stop' : mapped }];
  };

  const startMessage = (message: unknown): Chunks => {
    startContent.add(message);
    startReason ??= at(message, 'stop_reason');
    return reports.start(message);
  };

  const readNext = (data: unknown): Chunks => {
    const index = at(data, 'index');
    switch (at(data, 'type')) {
      case 'message_start':
        return startMessage(at(data, 'message'));
      case 'content_block_start':
        return blocks.start(index, at(data, 'content_block'));
      case 'content_block_delta':
        return blocks.add(index, at(data, 'delta'));
      case 'content_block_stop':
        return blocks.stop(index);
      case 'message_delta':
        return [...reports.end(data), ...finish(at(data, 'delta', 'stop_reason'))];
      case 'message_stop':
        return isFinished ? [] : finish(startReason);
      default:
        return [];
    }
  };

  const read = (data: unknown): Chunks => {
    if (at(data, 'type') === 'message_start') return readNext(data);
    const before = startContent.readUpTo(data);
    return before.length === 0 ? readNext(data) : [...before, ...readNext(data)];
  };

  return { read, working: blocks.working };
};

/** The content of `message_start`. */
const createStartContent = (blocks: Blocks) => {
  let content: readonly unknown[] | undefined;
  let readCount = 0;
  return {
    add: (message: unknown): void => {
      content ??= blocks.areRead() ? [] : listAt(message, 'content');
    },
    /** Reads its blocks up to that of an event. */
    readUpTo: (data: unknown): Chunks => {
      if (content === undefined || readCount === content.length) return [];
      const index = at(data, 'index');
      const type = textAt(data, 'type');
      const end = type.startsWith('message_') ? Infinity : Number(index) + 1;
      return content.slice(readCount, end).flatMap((block) => {
        const place = readCount++;
        // The stream repeats this block, perhaps with more content.
        const isRepeated =
          place === index &&
          ['type', 'id'].every((key) => at(block, key) === at(data, 'content_block', key));
        return isRepeated ? [] : blocks.whole(place, block);
      });
    },
  };
};

/** The blocks of an answer. */
interface Blocks {
  readonly start: (index: unknown, block: unknown) => Chunks;
  readonly add: (index: unknown, delta: unknown) => Chunks;
  readonly stop: (index: unknown) => Chunks;
  /** Reads a complete block. */
  readonly whole: (index: unknown, block: unknown) => Chunks;
  /** Ends the open block: its own stop may be missing. */
  readonly close: () => Chunks;
  readonly areRead: () => boolean;
  readonly haveCalls: () => boolean;
  /** Whether there is a block of any kind but text and thinking: a call, of your tools or of those that the vendor runs. */
  readonly haveAny: () => boolean;
  /** The open block that is not text, or the tool of the vendor that runs: its result is the next block. */
  readonly working: () => string | undefined;
}

const createBlocks = (toolNameOf: (wireName: string) => string): Blocks => {
  const known = new Map<unknown, OpenBlock>();
  let latest: OpenBlock | undefined;
  let hasText = false;

  const close = (): Chunks => {
    if (latest === undefined || latest.isClosed) return [];
    latest.isClosed = true;
    return endChunks(latest);
  };
  const open = (next: OpenBlock): Chunks => {
    const before = latest;
    const ended = close();
    known.set(next.index, next);
    latest = next;
    const isText = next.block['type'] === 'text';
    const begins = isText && hasText;
    hasText ||= isText;
    return [...ended, ...(begins ? [textStart(before)] : []), ...startChunks(next, toolNameOf)];
  };
  const hasBlock = (isIt: (type: unknown) => boolean): boolean =>
    [...known.values()].some(({ block }) => isIt(block['type']));
  const start = (index: unknown, block: unknown): Chunks => {
    if (!isRecord(block)) return [];
    const before = known.get(index);
    if (before === undefined || !isRepeat(before, block)) return open(openBlock(index, block));
    if (before.isImplied) takeStart(before, block);
    return [];
  };
  /** The block of a delta. Text and thinking need no start. */
  const blockOf = (index: unknown, delta: JsonRecord): readonly [OpenBlock | undefined, Chunks] => {
    const block = known.get(index);
    const type = impliedTypes.get(delta['type']);
    if (block !== undefined || type === undefined) return [block, []];
    const implied = openBlock(index, { type }, true);
    return [implied, open(implied)];
  };
  return {
    start,
    close,
    areRead: () => known.size > 0,
    haveCalls: () => hasBlock((type) => type === 'tool_use'),
    haveAny: () => hasBlock((type) => !thoughts.has(type)),
    working: () => (latest === undefined ? undefined : workIn(latest)),
    stop: (index) => (latest?.index === index ? close() : []),
    whole: (index, block) => {
      const chunks = start(index, block);
      return [...chunks, ...close()];
    },
    add: (index, delta) => {
      if (!isRecord(delta) || isVoid(delta)) return [];
      if (typeof delta['type'] !== 'string') throw unreadable('a delta without a type');
      const [block, before] = blockOf(index, delta);
      if (block === undefined) throw strayDelta(delta, 'whose block has not started');
      const chunks = deltaChunks(block, delta, block === latest);
      return before.length === 0 ? chunks : [...before, ...chunks];
    },
  };
};

const thoughts: ReadonlySet<unknown> = new Set(['text', 'thinking', 'redacted_thinking']);

/** Whether a delta has no value. */
const isVoid = (delta: JsonRecord): boolean =>
  delta['type'] === 'citations_delta'
    ? textAt(delta, 'citation', 'type') === ''
    : Object.keys(delta).length === 0;

const workIn = ({ block, isClosed }: OpenBlock): string | undefined => {
  const type = textAt(block, 'type');
  if (!isClosed) return type === 'text' ? undefined : type;
  return type === 'server_tool_use' || type === 'mcp_tool_use' ? textAt(block, 'name') : undefined;
};

/** Text after another block is a message of its own; adjacent blocks of text are one. */
const textStart = (before: OpenBlock | undefined): ModelChunk =>
  before?.block['type'] === 'text' ? { type: 'textStart' } : { type: 'textStart', separate: true };

/** Whether a start repeats an earlier one. Some servers give all blocks the same index. */
const isRepeat = ({ block, isImplied }: OpenBlock, next: JsonRecord): boolean =>
  isImplied ? block['type'] === next['type'] : JSON.stringify(block) === JSON.stringify(next);

/** Takes the start of a block whose deltas came first. */
const takeStart = (opened: OpenBlock, block: JsonRecord): void => {
  if (textAt(block, 'text') + textAt(block, 'thinking') !== '') {
    throw unreadable('the start of a block after its deltas');
  }
  opened.isImplied = false;
  opened.block = block;
  opened.signature ||= textAt(block, 'signature');
};

const impliedTypes: ReadonlyMap<unknown, string> = new Map([
  ['text_delta', 'text'],
  ['citations_delta', 'text'],
  ['thinking_delta', 'thinking'],
  ['signature_delta', 'thinking'],
]);

/** The chunks of a delta, which belongs to the latest block unless it is a part of arguments. */
const deltaChunks = (opened: OpenBlock, delta: JsonRecord, isLatest: boolean): Chunks => {
  const { block, index, isClosed } = opened;
  const { type } = delta;
  if (type === 'input_json_delta' && block['type'] === 'tool_use') {
    const given = argumentsOf(delta['partial_json']);
    if (isClosed && opened.input !== undefined) throw strayDelta(delta, ended);
    if (given.json !== '') opened.json.push(given.json ?? '');
    return [{ type: 'toolCall', ...blockIndex(index), ...given }];
  }
  if (!isLatest) throw strayDelta(delta, ended);
  switch (isOpaque(block) ? 'opaque' : type) {
    case 'text_delta':
      return textChunks('text', textAt(delta, 'text'));
    case 'thinking_delta':
      return textChunks('thinking', textAt(delta, 'thinking'));
    case 'citations_delta':
      return citationChunks(delta['citation']);
    case 'signature_delta':
      opened.signature = textAt(delta, 'signature');
      return isClosed ? signatureChunks(opened.signature) : [];
    default:
      if (isClosed) throw strayDelta(delta, ended);
      addFields(opened, delta);
      return [];
  }
};

const ended = 'whose block has ended';

/** Adds the fields of a delta to a block that only Anthropic understands, or those that Millrace does not know. */
const addFields = (opened: OpenBlock, delta: JsonRecord): void => {
  const { type, citation } = delta;
  if (type === 'input_json_delta') opened.json.push(textAt(delta, 'partial_json'));
  else if (type === 'citations_delta') {
    const citations = [...listAt({ ...opened.block, ...opened.added }, 'citations'), citation];
    opened.added = { ...opened.added, citations };
  } else opened.added = merged(opened.added, opened.block, delta);
};

const strayDelta = ({ type }: JsonRecord, why: string): MillraceError =>
  unreadable(`a delta of the type '${String(type).slice(0, 80)}' ${why}`);

const unreadable = (what: string): MillraceError =>
  new MillraceError('invalidResponse', `${vendor} answered with ${what}.`, { retryable: true });
