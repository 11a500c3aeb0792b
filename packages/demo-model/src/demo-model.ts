import {
  type Message,
  MillraceError,
  type Model,
  type ModelChunk,
  type ModelContext,
  type ModelRequest,
  textOf,
} from '@millrace/core';
import {
  concatMap,
  defer,
  defaultIfEmpty,
  filter,
  from,
  map,
  type Observable,
  of,
  take,
  timer,
} from 'rxjs';
import { respond, type Response } from './respond.js';

/** How the demo model speaks. */
export interface DemoModelOptions {
  /** Milliseconds between words, so that a demo looks alive. Default: 0, all at once. */
  readonly pace?: number;
}

/**
 * Makes a model of rules and retrieval for the first run: no key, no network, and no language model.
 *
 * It picks tools by their declarations, fills in their arguments from the question, and writes an answer out of
 * the results. It knows no tool beforehand, reads no `system` text, and the same request always gets the same
 * chunks. Its usage counts words, not tokens. It pauses while demand is closed, and waits on the scheduler of the
 * context.
 */
export const demoModel = (options: DemoModelOptions = {}): Model => {
  const pace = paceOf(options);
  return {
    name: 'demo-rules',
    unsupported: ['temperature', 'maxTokens', 'stopSequences'],
    stream$: (request, context) =>
      defer(() => from(chunksOf(request))).pipe(
        concatMap((chunk, index) => paced$(chunk, index === 0 ? 0 : pace, context)),
      ),
  };
};

const paceOf = (options: DemoModelOptions): number => {
  const unknown = Object.keys(options).filter((key) => key !== 'pace');
  if (unknown.length > 0) {
    throw new MillraceError(
      'config',
      `demoModel() has no option '${unknown.join("', '")}'. Its options are: pace.`,
    );
  }
  const { pace = 0 } = options;
  if (Number.isFinite(pace) && pace >= 0) return pace;
  throw new MillraceError(
    'config',
    `demoModel({ pace }) takes milliseconds, 0 or more, and not ${pace}.`,
  );
};

const paced$ = (
  chunk: ModelChunk,
  pace: number,
  { demand, scheduler }: ModelContext,
): Observable<ModelChunk> => {
  const isWord = chunk.type === 'text' || chunk.type === 'thinking';
  const waited = pace > 0 && isWord ? timer(pace, scheduler).pipe(map(() => chunk)) : of(chunk);
  return waited.pipe(concatMap((it) => demanded$(it, demand)));
};

/** Holds a chunk back until demand is open. A demand that has completed stays open. */
const demanded$ = (
  chunk: ModelChunk,
  { isOpen, open$ }: ModelContext['demand'],
): Observable<ModelChunk> =>
  isOpen
    ? of(chunk)
    : open$.pipe(
        filter((open) => open),
        take(1),
        defaultIfEmpty(true),
        map(() => chunk),
      );

const chunksOf = (request: ModelRequest): readonly ModelChunk[] => {
  const response = respond(request);
  const said = response.type === 'answer' ? response.text : '';
  return [
    ...wordsIn(response.thinking).map((text): ModelChunk => ({ type: 'thinking', text })),
    ...wordsIn(said).map((text): ModelChunk => ({ type: 'text', text })),
    ...toolUses(response),
    { type: 'usage', usage: usageOf(request, response) },
    { type: 'finish', finish: 'stop' },
  ];
};

const toolUses = (response: Response): readonly ModelChunk[] =>
  response.type === 'act'
    ? response.calls.map(({ name, input }, index) => ({ type: 'toolUse', index, name, input }))
    : [];

const wordsIn = (text: string): readonly string[] => text.match(/\s*\S+\s*/gu) ?? [];

/** Words stand for tokens: there is no tokenizer. */
const usageOf = ({ messages, system = '' }: ModelRequest, response: Response) => ({
  inputTokens: messages.flatMap(textsOf).reduce((sum, text) => sum + count(text), count(system)),
  outputTokens:
    count(response.thinking) +
    (response.type === 'answer' ? count(response.text) : response.calls.length),
});

const textsOf = (message: Message): readonly string[] =>
  message.role === 'tool' ? message.content.map(textOf) : [textOf(message)];

const count = (text: string): number => text.match(/\S+/gu)?.length ?? 0;
