import {
  type Model,
  type ModelChunk,
  type ModelReport,
  type ModelRequest,
  openDemand,
} from 'millrace';
import { asyncScheduler, from, lastValueFrom, toArray } from 'rxjs';
import { corpusTools, type DialectName } from './corpus/sample.test-support.js';
import {
  actionDialect,
  type Dialect,
  flatDialect,
  linesDialect,
  stepsDialect,
} from './dialects.js';
import { textTools } from './text-tools.js';

export const dialects: Readonly<Record<DialectName, Dialect>> = {
  action: actionDialect(),
  flat: flatDialect(),
  steps: stepsDialect(),
  lines: linesDialect(),
};

export interface Replied {
  readonly chunks: readonly ModelChunk[];
  readonly reports: readonly ModelReport[];
  /** Neighbouring deltas of one kind as one. */
  readonly joined: readonly ModelChunk[];
}

export const request: ModelRequest = {
  messages: [{ id: 'm', role: 'user', content: [{ type: 'text', text: '?' }] }],
  tools: corpusTools,
};

/** What comes of a reply that arrives in these pieces. */
export const replied = async (
  dialect: Dialect,
  pieces: readonly string[],
  { asked = request, end = 'stop' }: { asked?: ModelRequest; end?: 'stop' | 'length' } = {},
): Promise<Replied> => {
  const source: readonly ModelChunk[] = [
    ...pieces.map((text): ModelChunk => ({ type: 'text', text })),
    { type: 'finish', finish: end },
  ];
  const model: Model = { name: 'm', stream$: () => from(source) };
  const reports: ModelReport[] = [];
  const chunks = await lastValueFrom(
    textTools(model, dialect)
      .stream$(asked, {
        demand: openDemand,
        scheduler: asyncScheduler,
        report: (event) => reports.push(event),
        stepId: 's',
        random: () => 0,
      })
      .pipe(toArray()),
  );
  return { chunks, reports, joined: joinDeltas(chunks) };
};

export const joinDeltas = (chunks: readonly ModelChunk[]): readonly ModelChunk[] =>
  chunks.reduce<readonly ModelChunk[]>((all, chunk) => {
    const last = all.at(-1);
    if (last?.type === 'text' && chunk.type === 'text') {
      return [...all.slice(0, -1), { type: 'text', text: last.text + chunk.text }];
    }
    if (last?.type === 'thinking' && chunk.type === 'thinking') {
      return [...all.slice(0, -1), { type: 'thinking', text: last.text + chunk.text }];
    }
    return [...all, chunk];
  }, []);

export const textIn = (chunks: readonly ModelChunk[], type: 'text' | 'thinking'): string =>
  chunks.map((chunk) => (chunk.type === type ? chunk.text : '')).join('');
