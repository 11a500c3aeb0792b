import type { Model, ModelChunk, ModelReport } from 'millrace';
import { lentContext } from 'millrace/testing';
import { from, lastValueFrom, toArray } from 'rxjs';
import { type Expected, tools } from './samples.test-support.js';

type FinishChunk = Extract<ModelChunk, { type: 'finish' }>;

export interface Read {
  readonly chunks: readonly ModelChunk[];
  readonly reports: readonly ModelReport[];
}

/** What a wrapper makes of a reply that arrives in these pieces. */
export const read = async (
  wrap: (model: Model) => Model,
  pieces: readonly string[],
  finish: FinishChunk['finish'] = 'stop',
  asked = tools,
): Promise<Read> => {
  const source: readonly ModelChunk[] = [
    ...pieces.map((text): ModelChunk => ({ type: 'text', text })),
    { type: 'finish', finish },
  ];
  const reports: ModelReport[] = [];
  const model = wrap({ name: 'm', stream$: () => from(source) });
  const context = lentContext({ report: (event) => reports.push(event) });
  const message = { id: 'm', role: 'user', content: [{ type: 'text', text: '?' }] } as const;
  const answer$ = model.stream$({ messages: [message], tools: asked }, context);
  return { chunks: await lastValueFrom(answer$.pipe(toArray())), reports };
};

/** What stays of the chunks, as a message would store it. */
export const outcome = (chunks: readonly ModelChunk[]): Expected => {
  const kept = chunks.slice(chunks.findLastIndex(({ type }) => type === 'restart') + 1);
  const joined = (kind: 'text' | 'thinking'): string =>
    kept.map((chunk) => (chunk.type === kind ? chunk.text : '')).join('');
  const [thinking, text] = [joined('thinking'), joined('text')];
  const calls = kept.flatMap((chunk) =>
    chunk.type === 'toolCall' && chunk.refusal === undefined
      ? [[chunk.name ?? '', chunk.input ?? strict(chunk.json ?? '')] as const]
      : [],
  );
  const refused = kept.flatMap((chunk) => (chunk.type === 'toolCall' ? (chunk.refusal ?? []) : []));
  const wrong = kept.find((chunk) => chunk.type === 'malformed');
  return {
    ...(thinking === '' ? {} : { thinking }),
    ...(text === '' ? {} : { text }),
    ...(calls.length === 0 ? {} : { calls }),
    ...(refused[0] === undefined ? {} : { refused: refused[0] }),
    ...(wrong?.why === undefined ? {} : { malformed: wrong.why }),
  };
};

const strict = (json: string): unknown => {
  try {
    return JSON.parse(json);
  } catch {
    return json;
  }
};

/** What stays of the chunks, with neighbouring deltas of one kind as one. */
export const sequence = (chunks: readonly ModelChunk[]): readonly ModelChunk[] =>
  chunks
    .slice(chunks.findLastIndex(({ type }) => type === 'restart') + 1)
    .reduce<readonly ModelChunk[]>((all, chunk) => {
      const last = all.at(-1);
      return (chunk.type === 'text' || chunk.type === 'thinking') && last?.type === chunk.type
        ? [...all.slice(0, -1), { type: chunk.type, text: last.text + chunk.text }]
        : [...all, chunk];
    }, []);
