import { isRecord } from '../../values/json.js';
import type { Message, ToolResultBlock } from '../../values/message.js';
import { characterEnd, characterStart } from '../../values/surrogates.js';
import type { ModelRequest } from '../../models/model.js';

/** A request without what no model is shown, and with stable ids: those of messages and tool calls are random. */
export const stableRequest = ({ messages, ...options }: ModelRequest): ModelRequest => {
  const ids = new Map<string, string>();
  const stableId = (id: string): string => {
    const known = ids.get(id) ?? `c${ids.size + 1}`;
    ids.set(id, known);
    return known;
  };
  const stableResult = ({ type, toolCallId, content, isError, note }: ToolResultBlock) => ({
    type,
    toolCallId: stableId(toolCallId),
    content,
    isError,
    ...(note === undefined ? {} : { note }),
  });
  const stableMessage = (message: Message, index: number): Message => {
    const id = `m${index + 1}`;
    switch (message.role) {
      case 'user':
        return { ...message, id };
      case 'assistant':
        return {
          ...message,
          id,
          content: message.content.map((block) =>
            block.type === 'tool_call' ? { ...block, id: stableId(block.id) } : block,
          ),
        };
      case 'tool':
        return { ...message, id, content: message.content.map(stableResult) };
    }
  };
  return { ...options, messages: messages.map(stableMessage) };
};

/** JSON as lines, with sorted keys and a new line after each line break of a string. */
export const linesOf = (value: unknown): readonly string[] =>
  JSON.stringify(sorted(value), undefined, 2).replaceAll('\\n', '\\n\n').split('\n');

const sorted = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isRecord(value)) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, item]) => [key, sorted(item)]));
};

/** UUIDs, and ids of calls. */
const randomIds = /\b(?:[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}|(?=\d*[a-f])[\da-f]{16})\b/gi;

/** Numbers the random ids of a request in their order: they differ in each run. */
export const withStableIds = (lines: readonly string[]): readonly string[] => {
  const names = new Map<string, string>();
  return lines.map((line) =>
    line.replace(randomIds, (found) => {
      const name = names.get(found) ?? `id-${names.size + 1}`;
      names.set(found, name);
      return name;
    }),
  );
};

/** The share of lines that two texts have in common. */
export const similarity = (a: readonly string[], b: readonly string[]): number => {
  const counts = new Map<string, number>();
  for (const line of a) counts.set(line, (counts.get(line) ?? 0) + 1);
  const shared = b.filter((line) => {
    const left = counts.get(line) ?? 0;
    counts.set(line, left - 1);
    return left > 0;
  });
  return (2 * shared.length) / (a.length + b.length);
};

interface Change {
  readonly sign: ' ' | '-' | '+';
  readonly line: string;
}

/** Lines around each change. */
const context = 3;
const maxLines = 60;
/** Pairs of lines that are compared; beyond that, all lines between the first and the last change differ. */
const maxPairs = 1_000_000;

/** The changed lines of two texts with some around them, `-` for the first and `+` for the second. */
export const diffOf = (before: readonly string[], after: readonly string[]): string => {
  const changes = changesOf(before, after);
  const isNear = (at: number): boolean =>
    changes.slice(Math.max(0, at - context), at + context + 1).some(({ sign }) => sign !== ' ');
  const shown = changes.flatMap(({ sign, line }, at) => {
    if (isNear(at)) return [`${sign} ${clipped(changes, at, line)}`];
    return at > 0 && isNear(at - 1) ? ['  …'] : [];
  });
  const more = shown.length - maxLines;
  return [...shown.slice(0, maxLines), ...(more > 0 ? [`  … ${more} more lines`] : [])].join('\n');
};

const changesOf = (before: readonly string[], after: readonly string[]): readonly Change[] => {
  const start = commonLength(before, after);
  const [a, b] = [before.slice(start), after.slice(start)];
  const end = commonLength(a.toReversed(), b.toReversed());
  const same = (lines: readonly string[]): readonly Change[] =>
    lines.map((line) => ({ sign: ' ', line }));
  return [
    ...same(before.slice(0, start)),
    ...middle(a.slice(0, a.length - end), b.slice(0, b.length - end)),
    ...same(a.slice(a.length - end)),
  ];
};

const commonLength = (a: readonly string[], b: readonly string[]): number => {
  const at = a.findIndex((line, index) => line !== b[index]);
  return at === -1 ? a.length : at;
};

/** By the longest common subsequence. */
const middle = (a: readonly string[], b: readonly string[]): readonly Change[] => {
  const removed = a.map((line): Change => ({ sign: '-', line }));
  const added = b.map((line): Change => ({ sign: '+', line }));
  if (a.length * b.length > maxPairs) return [...removed, ...added];
  const row = b.length + 1;
  const lengths = new Uint32Array((a.length + 1) * row);
  const lengthAt = (i: number, j: number): number => lengths[i * row + j] ?? 0;
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      lengths[i * row + j] =
        a[i] === b[j]
          ? lengthAt(i + 1, j + 1) + 1
          : Math.max(lengthAt(i + 1, j), lengthAt(i, j + 1));
    }
  }
  const changes: Change[] = [];
  let i = 0;
  let j = 0;
  while (i < a.length && j < b.length) {
    const line = a[i] ?? '';
    if (line === b[j]) {
      changes.push({ sign: ' ', line });
      i += 1;
      j += 1;
    } else if (lengthAt(i + 1, j) >= lengthAt(i, j + 1)) {
      changes.push(...removed.slice(i, i + 1));
      i += 1;
    } else {
      changes.push(...added.slice(j, j + 1));
      j += 1;
    }
  }
  return [...changes, ...removed.slice(i), ...added.slice(j)];
};

const maxWidth = 160;

/** A long line without what it has in common with the line that replaces it, or that it replaces. */
const clipped = (changes: readonly Change[], at: number, line: string): string => {
  if (line.length <= maxWidth) return line;
  const { sign } = changes[at] ?? {};
  const pair = sign === '-' ? changes[at + 1] : changes[at - 1];
  const isPair = pair !== undefined && sign !== ' ' && pair.sign !== ' ' && pair.sign !== sign;
  const differs = isPair ? commonLength(line.split(''), pair.line.split('')) : 0;
  const from = characterStart(line, Math.max(0, differs - maxWidth / 4));
  const part = line.slice(from, characterEnd(line, from + maxWidth));
  return `${from > 0 ? '…' : ''}${part}${from + maxWidth < line.length ? '…' : ''}`;
};
