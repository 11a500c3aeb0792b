import { type ModelChunk, noUsage, type Usage } from '@millrace/core';
import { defined } from '@millrace/core/values';

/** Collects an answer while it streams. */
export interface ResponseDraft {
  readonly add: (chunk: ModelChunk) => void;
  /** The usage of the answer so far. */
  readonly usage: () => Usage;
  /** The answer with adjacent deltas joined, if it is complete and usable: it ended by itself, and could be read. */
  readonly chunks: () => readonly ModelChunk[] | undefined;
}

export const createResponseDraft = (): ResponseDraft => {
  let content: ModelChunk[] = [];
  let usage = noUsage;
  let isWhole = false;
  let isUsable = true;
  return {
    add: (chunk) => {
      switch (chunk.type) {
        case 'usage':
          usage = { ...usage, ...defined(chunk.usage) };
          break;
        case 'restart':
          content = [];
          usage = noUsage;
          isWhole = false;
          isUsable = true;
          break;
        case 'malformed':
          isUsable = false;
          break;
        case 'finish':
          isWhole ||= chunk.finish === 'stop';
          isUsable &&= chunk.finish === 'stop';
          break;
        default:
          // After the finish, only usage and another attempt count.
          if (!isWhole) content.push(chunk);
          if (chunk.type === 'toolCall' && chunk.refusal !== undefined) isUsable = false;
      }
    },
    usage: () => usage,
    chunks: () =>
      isWhole && isUsable && content.length > 0
        ? [...joined(content), { type: 'finish', finish: 'stop' }]
        : undefined,
  };
};

/** Joins deltas that continue each other. */
const joined = (chunks: readonly ModelChunk[]): readonly ModelChunk[] => {
  const runs: [ModelChunk, ...ModelChunk[]][] = [];
  for (const chunk of chunks) {
    const run = runs.at(-1);
    const last = run?.at(-1);
    if (run !== undefined && last !== undefined && continues(last, chunk)) run.push(chunk);
    else runs.push([chunk]);
  }
  return runs.map(joinedRun);
};

const continues = (before: ModelChunk, chunk: ModelChunk): boolean => {
  if (before.type === 'text') return chunk.type === 'text';
  if (before.type === 'thinking') {
    return (
      chunk.type === 'thinking' &&
      before.signature === undefined &&
      before.redacted === chunk.redacted
    );
  }
  return (
    before.type === 'toolCall' &&
    chunk.type === 'toolCall' &&
    before.index === chunk.index &&
    before.input === undefined &&
    chunk.input === undefined &&
    chunk.name === undefined &&
    (chunk.id === undefined || chunk.id === before.id)
  );
};

const joinedRun = (run: readonly [ModelChunk, ...ModelChunk[]]): ModelChunk => {
  const [first] = run;
  const last = run.at(-1) ?? first;
  switch (first.type) {
    case 'text':
      return { ...first, text: textIn(run) };
    case 'thinking':
      return { ...first, ...(last.type === 'thinking' && last), text: textIn(run) };
    case 'toolCall':
      return run.length === 1 ? first : { ...first, json: jsonIn(run) };
    default:
      return first;
  }
};

const textIn = (run: readonly ModelChunk[]): string =>
  run.map((chunk) => ('text' in chunk ? chunk.text : '')).join('');

const jsonIn = (run: readonly ModelChunk[]): string =>
  run.map((chunk) => ('json' in chunk ? (chunk.json ?? '') : '')).join('');
