// Two runs side by side: on one time axis, with their first difference.
import { type CallEntry, isChunkRun, isMark, type LogItem } from '../protocol.js';
import { messageAt, type Part, toolAt } from './conversation.js';
import { createRun, type Run } from './run.js';

/** A fork, continued from its original: the steps that it has kept are those of the original. */
export interface JoinedRun {
  readonly run: Run;
  /** The time of the original at which the fork begins. */
  readonly forkedAt: number;
  /** Takes what the fork has received since. */
  update(): void;
}

export type ForkedFrom = NonNullable<CallEntry['forkedFrom']>;

/** Joins the log of a fork to that of its original. `undefined` if the original has no such step. */
export const joinFork = (original: Run, fork: Run, { callId, at }: ForkedFrom): JoinedRun | undefined => {
  const forkPosition = stepPosition(original, callId, at);
  const newId = fork.lanes.root?.callId;
  if (forkPosition === undefined || newId === undefined) return undefined;
  const run = createRun();
  const forkedAt = original.log.timeAt(forkPosition);
  run.log.append(original.log.items(0, forkPosition).map((item) => moved(item, callId, newId, 0)));
  let taken = ownStart(fork);
  const shift = forkedAt - fork.log.timeAt(taken);
  const update = (): void => {
    if (taken >= fork.log.size) return;
    const items = fork.log.items(taken).map((item) => moved(item, newId, newId, shift));
    taken = fork.log.size;
    run.log.append(items);
  };
  update();
  return { run, forkedAt, update };
};

/** The position at which a step of a root call, or of a call below it, begins. */
export const stepPosition = ({ lanes }: Run, callId: string, step: string): number | undefined => {
  const own = lanes.calls.get(callId)?.steps.get(step);
  if (own !== undefined) return own;
  for (let end = step.indexOf('/'); end > 0; end = step.indexOf('/', end + 1)) {
    const below = lanes.calls.get(`${callId}/${step.slice(0, end)}`)?.steps.get(step.slice(end + 1));
    if (below !== undefined) return below;
  }
  return undefined;
};

const kept = ['preCall', 'stepReplayed', 'messagesAppended', 'stateChanged'];

/** The position of the first entry of a fork that is no replay. */
const ownStart = ({ log }: Run): number => {
  let lastKept = -1;
  for (let position = 0; position < log.size; position += 1) {
    const entry = log.entry(position);
    if (entry?.type === 'chunk') break;
    if (entry?.type === 'event') {
      if (!kept.includes(entry.event.type)) break;
      lastKept = position;
    }
  }
  return lastKept + 1;
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
  return { ...item, callId, ...parent, at: item.at + shift };
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
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1;
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

const wordsOf = (text: string): readonly string[] => text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [];

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
    pieces.push({ in: isSame ? 'both' : isLeft ? 'left' : 'right', text: (isSame || isLeft ? a[i] : b[j]) ?? '' });
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
    if (last?.in === piece.in) result[result.length - 1] = { in: piece.in, text: last.text + piece.text };
    else result.push(piece);
  }
  return result;
};
