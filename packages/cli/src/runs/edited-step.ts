import { MillraceError } from '@millrace/core';
import { isRecord } from '@millrace/core/adapter';
import {
  otherAnswer,
  otherQuestion,
  otherResult,
  type StepEdit,
  type StepSummary,
} from '@millrace/core/journal';

/** What a call begins with, where it asks something else. It has what was said before with it, as it belongs to no conversation any more. */
export const withQuestion =
  (question: string, history: readonly unknown[]): StepEdit =>
  (step) => {
    const asked = otherQuestion(question)(step);
    if (!isRecord(asked)) return asked;
    const options = isRecord(asked['options']) ? asked['options'] : {};
    return { ...asked, options: { ...options, ...(history.length > 0 && { history }) } };
  };

/** Lets tools have given, and the model have said, something else: texts by the ids of their steps. */
export const withTexts = (
  texts: Readonly<Record<string, string>>,
  steps: readonly StepSummary[],
): Readonly<Record<string, StepEdit>> =>
  Object.fromEntries(
    Object.entries(texts).map(([id, text]) => [
      id,
      editOf(id, steps.find((step) => step.id === id)?.kind)(text),
    ]),
  );

/** That there is no such step is for the fork to say, which knows those that it keeps. */
const editOf = (
  id: string,
  kind: StepSummary['kind'] | undefined,
): ((text: string) => StepEdit) => {
  switch (kind) {
    case 'model':
      return otherAnswer;
    case 'tool':
    case undefined:
      return otherResult;
    case 'call':
      throw notEdited(id, 'To ask something else: --question.');
    case 'intent':
      throw notEdited(
        id,
        `To let the tool have given something else: ${id.replace(/\/intent$/u, '')}.`,
      );
    case 'prepare':
    case 'open':
    case 'reply':
    case 'other':
      throw notEdited(id, 'millrace runs <id> lists the kinds of its steps.');
  }
};

const notEdited = (id: string, instead: string): MillraceError =>
  new MillraceError(
    'invalidRequest',
    `The step '${id}' cannot be edited: only what a tool gave or the model said can. ${instead}`,
  );
