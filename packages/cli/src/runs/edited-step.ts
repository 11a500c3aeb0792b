import { MillraceError } from '@millrace/core';
import { isRecord } from '@millrace/core/adapter';
import type { ForkedStep, StepSummary } from '@millrace/core/journal';

/** What a call begins with, where it asks something else. It has what was said before with it, as it belongs to no conversation any more. */
export const withQuestion = (
  { id, value }: ForkedStep,
  question: string,
  history: readonly unknown[],
): unknown => {
  if (id !== 'call' || !isRecord(value)) return undefined;
  const input = [{ ...lastOf(value['input']), content: textContent(question) }];
  const options = isRecord(value['options']) ? value['options'] : {};
  return { ...value, input, options: { ...options, ...(history.length > 0 && { history }) } };
};

/** What a tool has given, where somebody says otherwise; nothing for a step that stays as it is. */
export const withResult = (
  { id, value }: ForkedStep,
  edits: Readonly<Record<string, string>>,
): unknown => {
  const text = Object.hasOwn(edits, id) ? edits[id] : undefined;
  if (text === undefined) return undefined;
  const result = isRecord(value) ? value['result'] : undefined;
  if (!isRecord(value) || !isRecord(result)) throw noTool(id);
  return { ...value, result: { ...result, content: textContent(text), isError: false } };
};

/** Refuses an edit of a step that the fork does not keep. */
export const assertKept = (
  edits: Readonly<Record<string, string>>,
  steps: readonly StepSummary[],
  at: string,
): void => {
  const end = steps.findIndex(({ id }) => id === at);
  const kept = steps.slice(0, end === -1 ? steps.length : end);
  const lost = Object.keys(edits).find((id) => !kept.some((step) => step.id === id));
  if (lost === undefined) return;
  const tools = kept.filter(({ kind }) => kind === 'tool').map(({ id }) => id);
  throw new MillraceError(
    'invalidRequest',
    `A fork at '${at}' does not keep a step '${lost}', so that it cannot be edited. ${tools.length === 0 ? 'It keeps no result of a tool.' : `The results that it keeps: ${tools.join(', ')}.`}`,
  );
};

const noTool = (id: string): MillraceError =>
  new MillraceError(
    'invalidRequest',
    `The step '${id}' is not the result of a tool, and only those can be edited. To ask something else: --question.`,
  );

const lastOf = (input: unknown): object => {
  const last: unknown = Array.isArray(input) ? input.at(-1) : undefined;
  return isRecord(last) ? last : {};
};

const textContent = (text: string) => [{ type: 'text', text }];
