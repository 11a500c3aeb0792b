import { isRecord } from '../json.js';
import { textBlock } from '../message.js';
import { toOutput } from '../tool-output.js';
import type { ForkedStep, StepEdit } from './forked-records.js';
import type { StepKind } from './steps.js';

/** Gives a step of a tool (`2/0`) another result: whatever the tool might have returned. */
export const otherResult = (returned: unknown): StepEdit =>
  ofKinds(['tool'], ({ value }) => {
    if (!isRecord(value) || !isRecord(value['result'])) return undefined;
    const { content, isError } = toOutput(returned);
    const { suspended: _, details: __, ...result } = value['result'];
    return { ...value, result: { ...result, content, isError }, failed: isError };
  });

/** Has the model say something else in one of its steps (`2`): this text, and the tools that it asked for are not run. */
export const otherAnswer = (text: string): StepEdit =>
  ofKinds(['model'], ({ value }) =>
    isRecord(value) && isRecord(value['message'])
      ? { ...value, message: { ...value['message'], content: [textBlock(text)] } }
      : undefined,
  );

/** Asks something else at the beginning (`call`): the first text of the input. Fork it before `prepare` or `open`, so that interceptors and memory see it. */
export const otherQuestion = (text: string): StepEdit =>
  ofKinds(['call', 'prepare'], ({ value }) => {
    if (!isRecord(value) || !Array.isArray(value['input'])) return undefined;
    const input: readonly unknown[] = value['input'];
    const at = input.findIndex((message) => isRecord(message) && message['role'] === 'user');
    return {
      ...value,
      input: input.map((message, index) =>
        index === at && isRecord(message) ? { ...message, content: [textBlock(text)] } : message,
      ),
    };
  });

const ofKinds = (kinds: readonly StepKind[], edit: (step: ForkedStep) => unknown): StepEdit =>
  Object.assign((step: ForkedStep) => edit(step), { kinds });
