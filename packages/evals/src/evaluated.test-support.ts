import { createAgent } from 'millrace';
import { scriptedModel, text } from 'millrace/testing';
import { firstValueFrom, of, throwError } from 'rxjs';
import { type EvalSummary, evaluate, type Scorer, summary } from './index.js';

/** A reply to change. */
export const reply = await createAgent({ model: scriptedModel([text('x')]) }).call('x');

/** Evaluates cases by name, with the score of each. NaN fails the scorer, and undefined the call. */
export const evaluated = (
  scores: Readonly<Record<string, number | undefined>>,
  { tokens = 10, scorers = ['right'] }: { tokens?: number; scorers?: string[] } = {},
): Promise<EvalSummary> => {
  const scorer: Scorer = ({ id }) => scores[id] ?? 0;
  const target = (input: unknown) =>
    scores[String(input)] === undefined
      ? throwError(() => new Error('down'))
      : of({ ...reply, usage: { ...reply.usage, inputTokens: tokens, outputTokens: 0 } });
  return firstValueFrom(
    evaluate(
      target,
      Object.keys(scores).map((input) => ({ input })),
      Object.fromEntries(scorers.map((name) => [name, scorer])),
    ).pipe(summary()),
  );
};
