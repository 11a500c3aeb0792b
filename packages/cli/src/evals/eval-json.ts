import type { CaseResult, EvalEvent, TrialResult } from '@millrace/evals';
import { printableJson } from '../presentation/printable.js';

/** Formats an event as one line of JSON: without messages, and with the texts and tool calls of the replies. */
export const eventLine = (event: EvalEvent, file: string): string => {
  const { type, scores, passRate, errors, trialCount, usage, scorerUsage, iterations, ms } = event;
  const totals = { passRate, errors, trialCount, usage, scorerUsage, iterations, ms };
  const cost = event.cost === undefined ? {} : { cost: event.cost };
  const own =
    event.type === 'case'
      ? { id: event.id, trials: trialsOf(event) }
      : { name: event.name, cases: event.cases.map(({ id }) => id) };
  return `${printableJson(JSON.stringify({ type, file, ...own, scores, ...totals, ...cost }))}\n`;
};

const trialsOf = ({ trials }: CaseResult): readonly unknown[] =>
  trials.map(({ trial, passed, ms, reply, error, scores }) => ({
    ...{ trial, passed, ms },
    ...(reply !== undefined && {
      ...{ text: reply.text, reason: reply.reason },
      toolCalls: reply.toolCalls.map(({ name, input, isError }) => ({ name, input, isError })),
    }),
    ...(error !== undefined && { error: errorOf(error) }),
    scores: Object.fromEntries(
      Object.entries(scores).map(([name, it]) => [
        name,
        it.status === 'scored' ? it : { status: it.status, error: errorOf(it.error) },
      ]),
    ),
  }));

const errorOf = ({ code, message }: NonNullable<TrialResult['error']>): unknown => ({
  code,
  message,
});
