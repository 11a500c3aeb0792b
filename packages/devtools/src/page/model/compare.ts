// Two runs side by side: on one time axis, with their first difference.
import { type CallEntry, isChunkRun, isMark, type LogItem, type ShownEvent } from '../protocol.js';
import { markEdited, messageAt, type Part, toolAt } from './conversation.js';
import {
  anyFields,
  fieldsOf,
  isRecord,
  messagesIn,
  stringOf,
  textIn,
  toolCallIn,
  withFields,
} from './read-event.js';
import { createRun, type Run } from './run.js';

/** A fork, continued from its original: the steps that it has kept are those of the original. */
export interface JoinedRun {
  readonly run: Run;
  /** The time of the original at which the fork begins. */
  readonly forkedAt: number;
  /** How many entries are those of the original. */
  readonly keptUntil: number;
  /** Takes what the fork has received since. */
  update(): void;
}

export type ForkedFrom = NonNullable<CallEntry['forkedFrom']>;

/** Joins the log of a fork to that of its original. `undefined` if the original has no such step. */
export const joinFork = (
  original: Run,
  fork: Run,
  { callId, at }: ForkedFrom,
): JoinedRun | undefined => {
  const forkStart = stepPosition(original, callId, at);
  const newId = fork.lanes.root?.callId;
  if (forkStart === undefined || newId === undefined) return undefined;
  const { position, isKept } = keptOf(original, callId, at, forkStart);
  const forkedAt = original.log.timeAt(position - 1);
  const items = original.log.items(0, position).filter(isKept);
  const begin = (edits: Contents): Run => {
    const run = createRun();
    for (const item of items) {
      const before = moved(item, callId, newId, 0);
      const after = edited(before, edits);
      run.log.append([after]);
      if (after !== before) markEdited(run.conversation.parts, run.log.size - 1);
    }
    return run;
  };
  let run = begin(new Map());
  const keptUntil = run.log.size;
  let start: number | undefined;
  let taken = 0;
  let hasAsked = false;
  const update = (): void => {
    start ??= ownStart(fork);
    if (start === undefined || taken >= fork.log.size) return;
    const shift = forkedAt - fork.log.timeAt(start);
    const added = fork.log.items(Math.max(start, taken)).filter((item) => !isReplay(item));
    taken = fork.log.size;
    run.log.append(added.map((item) => moved(item, newId, newId, shift)));
    const asked = hasAsked ? undefined : added.find((item) => isRequest(item, newId));
    if (asked === undefined) return;
    hasAsked = true;
    // Only a request of the fork shows which kept steps were edited.
    const contents = contentsIn(fieldsOf(asked)['messages']);
    run = begin(contents);
    run.log.append(
      fork.log
        .items(start)
        .filter((item) => !isReplay(item))
        .map((item) => moved(item, newId, newId, shift)),
    );
  };
  update();
  return {
    get run() {
      return run;
    },
    forkedAt,
    keptUntil,
    update,
  };
};

/** The calls of a session, with the logs that have come. */
export interface KnownCalls {
  readonly callsById: ReadonlyMap<string, Pick<CallEntry, 'id' | 'forkedFrom'>>;
  readonly runs: ReadonlyMap<string, Run>;
}

/** A run as it is shown: a fork whose original is known is joined to it. */
export interface WholeRun {
  readonly run: Run;
  readonly joined: JoinedRun | undefined;
}

/** Originals of originals that are looked up. */
const maxForks = 20;

/** Returns a function that finds the run of a call. It joins a fork once, and then follows both logs. */
export const createJoins = () => {
  const joins = new WeakMap<Run, { readonly original: Run; readonly joined: JoinedRun }>();
  const wholeRun = (known: KnownCalls, id: string, depth = 0): WholeRun | undefined => {
    const run = known.runs.get(id);
    const from = known.callsById.get(id)?.forkedFrom;
    if (run === undefined || from === undefined || depth > maxForks)
      return run && { run, joined: undefined };
    const original = wholeRun(known, from.callId, depth + 1)?.run;
    const before = joins.get(run);
    const isSame = before !== undefined && before.original === original;
    const joined = isSame ? before.joined : original && joinFork(original, run, from);
    if (original === undefined || joined === undefined) return { run, joined: undefined };
    if (isSame) joined.update();
    else joins.set(run, { original, joined });
    return { run: joined.run, joined };
  };
  return (known: KnownCalls, id: string) => wholeRun(known, id);
};

/**
 * The part of the original that a fork keeps: all until the step begins. Of parallel tool calls, those before it in the
 * model's order are kept, which may end later.
 */
const keptOf = (original: Run, callId: string, at: string, start: number) => {
  const [turn = '', index = 0] = /^(\d+)\/(\d+)/u.exec(at)?.slice(1) ?? [];
  const call = original.lanes.calls.get(callId);
  const tools = [...(call?.toolsByStep ?? [])].filter(([step]) => step.startsWith(`${turn}/`));
  const isAfter = ([step]: readonly [string, string]): boolean =>
    Number(step.slice(turn.length + 1)) >= Number(index);
  const before = tools.filter((tool) => !isAfter(tool)).map(([, id]) => id);
  const after = turn === '' ? [] : tools.filter(isAfter);
  const ends = original.conversation.parts.flatMap((part) =>
    part.type === 'tool' && part.callId === callId && before.includes(part.toolCallId)
      ? [(part.result?.position ?? 0) + 1]
      : [],
  );
  const position = turn === '' ? start : Math.max(start, ...ends);
  const isKept = (item: LogItem): boolean =>
    !after.some(([step, id]) => {
      if (item.callId !== callId)
        return renamed(item.callId, `${callId}/${id}`, '') !== item.callId;
      if (isMark(item)) return item.mark === 'step' && renamed(item.id, step, '') !== item.id;
      return !isChunkRun(item) && toolCallIn(anyFields(item)['toolCall']).id === id;
    });
  return { position, isKept };
};

/** The position at which a step of a root call, or of a call below it, begins. */
export const stepPosition = ({ lanes }: Run, callId: string, step: string): number | undefined => {
  const own = lanes.calls.get(callId)?.steps.get(step);
  if (own !== undefined) return own;
  for (let end = step.indexOf('/'); end > 0; end = step.indexOf('/', end + 1)) {
    const below = lanes.calls
      .get(`${callId}/${step.slice(0, end)}`)
      ?.steps.get(step.slice(end + 1));
    if (below !== undefined) return below;
  }
  return undefined;
};

/** Events of a fork before its first own step. */
const kept = ['preCall', 'stepReplayed', 'messagesAppended', 'stateChanged'];

const isReplay = (item: LogItem): boolean =>
  !isMark(item) && !isChunkRun(item) && item.type === 'stepReplayed';

/** The position after the last step that a fork replays first; `undefined` until it does something of its own. */
const ownStart = ({ log }: Run): number | undefined => {
  let lastKept = -1;
  for (let position = 0; position < log.size; position += 1) {
    const entry = log.entry(position);
    if (entry?.type === 'chunk') return lastKept + 1;
    if (entry?.type === 'event') {
      if (!kept.includes(entry.event.type)) return lastKept + 1;
      lastKept = position;
    }
  }
  return undefined;
};

const renamed = (id: string, from: string, to: string): string =>
  id === from || id.startsWith(`${from}/`) ? to + id.slice(from.length) : id;

const moved = (item: LogItem, from: string, to: string, shift: number): LogItem => {
  const callId = renamed(item.callId, from, to);
  if (isMark(item)) return { ...item, callId, at: item.at + shift };
  const parent = item.parentId === undefined ? {} : { parentId: renamed(item.parentId, from, to) };
  if (isChunkRun(item)) {
    const messageId = renamed(item.messageId, from, to);
    return { ...item, callId, ...parent, messageId, ats: item.ats.map((at) => at + shift) };
  }
  const { message, messageId } = anyFields(item);
  return withFields(item, {
    ...{ callId, ...parent, at: item.at + shift },
    ...(isRecord(message) && {
      message: { ...message, id: renamed(stringOf(message['id']), from, to) },
    }),
    ...(typeof messageId === 'string' && { messageId: renamed(messageId, from, to) }),
  });
};

/** The contents of messages and tool results, by their ids. */
type Contents = ReadonlyMap<string, unknown>;

const isRequest = (item: LogItem, callId: string): boolean =>
  !isMark(item) && !isChunkRun(item) && item.type === 'preReasoning' && item.callId === callId;

const contentsIn = (messages: unknown): Contents =>
  new Map(
    messagesIn(messages).flatMap((message): readonly (readonly [string, unknown])[] =>
      message['role'] === 'tool'
        ? messagesIn(message['content']).map((result) => [
            stringOf(result['toolCallId']),
            result['content'],
          ])
        : [[stringOf(message['id']), message['content']]],
    ),
  );

/** An entry of the original with the texts that the fork has in its place. */
const edited = (item: LogItem, contents: Contents): LogItem => {
  if (contents.size === 0 || isMark(item) || isChunkRun(item)) return item;
  const withContent = (value: unknown, id: string): unknown => {
    const content = contents.get(id);
    return content === undefined || textIn({ content }) === textIn(value)
      ? value
      : { ...fieldsOf(value), content };
  };
  const changed = (name: string, before: unknown, after: unknown): ShownEvent =>
    before === after ? item : withFields(item, { [name]: after });
  const { message, result, toolCall, input } = anyFields(item);
  switch (item.type) {
    case 'preCall': {
      const before = messagesIn(input);
      const after = before.map((one, index) => withContent(one, `${item.callId}/input/${index}`));
      const isSame = after.every((one, index) => one === before[index]);
      return isSame ? item : withFields(item, { input: after });
    }
    case 'postReasoning':
      return changed('message', message, withContent(message, stringOf(fieldsOf(message)['id'])));
    case 'postActing':
      return changed('result', result, withContent(result, toolCallIn(toolCall).id));
    default:
      return item;
  }
};

// ---------------------------------------------------------------- differences

/** A step of both runs, with the text of each. */
export interface StepPair {
  readonly step: string;
  readonly label: string;
  readonly left: string | undefined;
  readonly right: string | undefined;
  readonly isSame: boolean;
}

/** The steps of the root calls of two runs, in order, by their ids. */
export const pairSteps = (left: Run, right: Run): readonly StepPair[] => {
  const [before, after] = [stepsOf(left), stepsOf(right)];
  return [...new Set([...before.keys(), ...after.keys()])].sort(inOrder).map((step) => {
    const [own, other] = [before.get(step), after.get(step)];
    return {
      step,
      label: own?.label ?? other?.label ?? step,
      left: own?.text,
      right: other?.text,
      isSame: own?.text === other?.text,
    };
  });
};

interface StepText {
  readonly label: string;
  readonly text: string;
}

const stepsOf = ({ conversation, lanes, log }: Run): ReadonlyMap<string, StepText> => {
  const rootId = lanes.root?.callId;
  const steps = new Map<string, StepText>();
  for (const part of conversation.parts) {
    if (part.callId !== rootId) continue;
    const step = stepOf(part, log.size);
    if (step !== undefined) steps.set(step.id, step);
  }
  return steps;
};

const stepOf = (part: Part, size: number): (StepText & { readonly id: string }) | undefined => {
  switch (part.type) {
    case 'input':
      return { id: 'call', label: 'Question', text: part.text };
    case 'message': {
      const { text, discarded } = messageAt(part, size);
      return part.step === undefined || discarded !== undefined
        ? undefined
        : { id: part.step, label: `Message ${part.step}`, text: text.slice(0) };
    }
    case 'tool': {
      if (part.step === undefined) return undefined;
      const { input, result } = toolAt(part, size);
      const text = `${part.name}(${input.slice(0)})${result === undefined ? '' : ` → ${result.text}`}`;
      return { id: part.step, label: `${part.name} ${part.step}`, text };
    }
    default:
      return undefined;
  }
};

/** The question, then turns by number: the message of a turn, then its tool calls. */
const inOrder = (a: string, b: string): number => {
  const [first, second] = [numbersOf(a), numbersOf(b)];
  return first.turn - second.turn || first.index - second.index;
};

const numbersOf = (step: string): { readonly turn: number; readonly index: number } => {
  if (step === 'call') return { turn: -1, index: 0 };
  const [turn = '', index] = step.split('/');
  return {
    turn: /^\d+$/u.test(turn) ? Number(turn) : Number.MAX_SAFE_INTEGER,
    index: index === undefined ? -1 : Number(index),
  };
};

/** Words that are in both texts, or in one. */
export interface DiffPiece {
  readonly in: 'both' | 'left' | 'right';
  readonly text: string;
}

/** Longer texts are compared word by word only at their beginning and their end. */
const maxCells = 1_000_000;

/** Compares two texts word by word, and finds the longest common subsequence. */
export const diffWords = (left: string, right: string): readonly DiffPiece[] => {
  const [before, after] = [wordsOf(left), wordsOf(right)];
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start])
    start += 1;
  let end = 0;
  while (
    end < Math.min(before.length, after.length) - start &&
    before[before.length - 1 - end] === after[after.length - 1 - end]
  ) {
    end += 1;
  }
  const [a, b] = [before.slice(start, before.length - end), after.slice(start, after.length - end)];
  return joined([
    { in: 'both', text: before.slice(0, start).join('') },
    ...(a.length * b.length > maxCells
      ? [
          { in: 'left' as const, text: a.join('') },
          { in: 'right' as const, text: b.join('') },
        ]
      : diffLists(a, b)),
    { in: 'both', text: before.slice(before.length - end).join('') },
  ]);
};

const wordsOf = (text: string): readonly string[] =>
  text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [];

const diffLists = (a: readonly string[], b: readonly string[]): readonly DiffPiece[] => {
  const width = b.length + 1;
  const lengths = new Uint32Array((a.length + 1) * width);
  const cell = (i: number, j: number): number => lengths[i * width + j] ?? 0;
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      lengths[i * width + j] =
        a[i] === b[j] ? cell(i + 1, j + 1) + 1 : Math.max(cell(i + 1, j), cell(i, j + 1));
    }
  }
  const pieces: DiffPiece[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    const isSame = i < a.length && j < b.length && a[i] === b[j];
    const isLeft = !isSame && i < a.length && (j >= b.length || cell(i + 1, j) >= cell(i, j + 1));
    pieces.push({
      in: isSame ? 'both' : isLeft ? 'left' : 'right',
      text: (isSame || isLeft ? a[i] : b[j]) ?? '',
    });
    if (isSame || isLeft) i += 1;
    if (isSame || !isLeft) j += 1;
  }
  return pieces;
};

const joined = (pieces: readonly DiffPiece[]): readonly DiffPiece[] => {
  const result: DiffPiece[] = [];
  for (const piece of pieces) {
    const last = result.at(-1);
    if (piece.text === '') continue;
    if (last?.in === piece.in)
      result[result.length - 1] = { in: piece.in, text: last.text + piece.text };
    else result.push(piece);
  }
  return result;
};
