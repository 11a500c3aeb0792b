import {
  type Message,
  type Model,
  type ModelChunk,
  type ModelContext,
  type ModelRequest,
  textOf,
} from 'millrace';
import { checkOptions, isDelay } from 'millrace/values';
import { concatMap, defer, first, from, map, type Observable, of, timer } from 'rxjs';
import { respond, type Response } from './respond.js';

/** Options of `demoModel()`. */
export interface DemoModelOptions {
  /** Milliseconds between words, for a demo that people read along. Default: 0. */
  readonly pace?: number | undefined;
}

/**
 * Creates a model that is a set of rules: it needs no key, no network and no language model.
 *
 * It chooses tools by their declarations, fills in their arguments from the question, and answers from the results. It
 * sees what every model sees, except that it does not read `system`. The same request always gets the same chunks. Its
 * usage counts words, not tokens. It pauses while demand is closed, and waits on the scheduler of the call.
 */
export const demoModel = (options: DemoModelOptions = {}): Model => {
  checkOptions('demoModel()', options, { pace: isDelay });
  const { pace = 0 } = options;
  return {
    name: 'demo-rules',
    unsupported: ['temperature', 'maxTokens', 'stopSequences'],
    stream$: (request, context) =>
      defer(() => from(chunksFor(request))).pipe(
        concatMap((chunk, index) => paced$(chunk, index === 0 ? 0 : pace, context)),
      ),
  };
};

/** Holds a chunk until it is due and demand is open. A demand that has completed stays open. */
const paced$ = (
  chunk: ModelChunk,
  pace: number,
  { demand, scheduler }: ModelContext,
): Observable<ModelChunk> => {
  const isWord = chunk.type === 'text' || chunk.type === 'thinking';
  const due$ = pace > 0 && isWord ? timer(pace, scheduler) : of(0);
  return due$.pipe(
    concatMap(() => demand.open$.pipe(first((isOpen) => isOpen, true))),
    map(() => chunk),
  );
};

const chunksFor = (request: ModelRequest): readonly ModelChunk[] => {
  const { thinking, text, calls } = respond(request);
  return [
    ...wordsOf(thinking).map((word): ModelChunk => ({ type: 'thinking', text: word })),
    ...wordsOf(text).map((word): ModelChunk => ({ type: 'text', text: word })),
    ...calls.map((call, index): ModelChunk => ({ type: 'toolCall', index, ...call })),
    { type: 'usage', usage: usageOf(request, { thinking, text, calls }) },
    { type: 'finish', finish: 'stop' },
  ];
};

const wordsOf = (text: string): readonly string[] => text.match(/\S+\s*/gu) ?? [];

/** Counts words, because there is no tokenizer. */
const usageOf = ({ messages, system = '' }: ModelRequest, { thinking, text, calls }: Response) => ({
  inputTokens: messages.flatMap(textsOf).reduce((sum, it) => sum + count(it), count(system)),
  outputTokens: count(thinking) + count(text) + calls.length,
});

const textsOf = (message: Message): readonly string[] =>
  message.role === 'tool' ? message.content.map(textOf) : [textOf(message)];

const count = (text: string): number => text.match(/\S+/gu)?.length ?? 0;
