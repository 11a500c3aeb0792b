import { type ModelChunk, noUsage, type Usage } from 'millrace';
import { defined } from 'millrace/values';

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
  let finish: FinishChunk['finish'] | undefined;
  let isUsable = true;
  return {
    add: (chunk) => {
      switch (chunk.type) {
        case 'usage':
          usage = { ...usage, ...defined(chunk.usage) };
          break;
        case 'restart':
          content = [];
          if (chunk.isSameRequest !== true) usage = noUsage;
          finish = undefined;
          isUsable = true;
          break;
        case 'malformed':
          isUsable = false;
          break;
        case 'finish':
          ({ finish } = chunk);
          break;
        default:
          content.push(chunk);
          if (chunk.type === 'toolCall' && chunk.refusal !== undefined) isUsable = false;
      }
    },
    usage: () => usage,
    chunks: () =>
      finish === 'stop' && isUsable && content.some(({ type }) => type !== 'facts')
        ? [...joined(content), { type: 'finish', finish: 'stop' }]
        : undefined,
  };
};

type FinishChunk = Extract<ModelChunk, { readonly type: 'finish' }>;

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
  if (before.type === 'text') return chunk.type === 'text' && before.vendorData === undefined;
  if (before.type === 'thinking') {
    return (
      chunk.type === 'thinking' &&
      (before.signature ?? before.vendorData) === undefined &&
      before.redacted === chunk.redacted
    );
  }
  return (
    before.type === 'toolCall' &&
    chunk.type === 'toolCall' &&
    before.vendorData === undefined &&
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
      return { ...first, ...(last.type === 'text' && last), text: textIn(run) };
    case 'thinking':
      return { ...first, ...(last.type === 'thinking' && last), text: textIn(run) };
    case 'toolCall': {
      const { vendorData } = last.type === 'toolCall' ? last : first;
      return run.length === 1 ? first : { ...first, ...defined({ vendorData }), json: jsonIn(run) };
    }
    default:
      return first;
  }
};

const textIn = (run: readonly ModelChunk[]): string =>
  run.map((chunk) => ('text' in chunk ? chunk.text : '')).join('');

const jsonIn = (run: readonly ModelChunk[]): string =>
  run.map((chunk) => ('json' in chunk ? (chunk.json ?? '') : '')).join('');
