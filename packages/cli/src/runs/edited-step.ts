import { MillraceError } from 'millrace';
import { isRecord } from 'millrace/values';
import {
  otherAnswer,
  otherQuestion,
  otherResult,
  type StepEdit,
  type StepSummary,
} from 'millrace/journal';

/** Replaces the question of a call. Adds the earlier messages, as a fork belongs to no conversation. */
export const withQuestion =
  (question: string, history: readonly unknown[]): StepEdit =>
  (step) => {
    const asked = otherQuestion(question)(step);
    if (!isRecord(asked)) return asked;
    const options = isRecord(asked['options']) ? asked['options'] : {};
    return { ...asked, options: { ...options, ...(history.length > 0 && { history }) } };
  };

/** Replaces results of tools and answers of the model with texts, by step id. */
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

/** An unknown step is reported by the fork, which knows the steps that it keeps. */
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
      throw notEdited(id, 'To change the question, use --question.');
    case 'intent':
      throw notEdited(
        id,
        `To replace the result of the tool, edit ${id.replace(/\/intent$/u, '')}.`,
      );
    case 'prepare':
    case 'open':
    case 'reply':
    case 'other':
      throw notEdited(id, 'npx @millrace/cli runs <id> lists the kinds of its steps.');
  }
};

const notEdited = (id: string, instead: string): MillraceError =>
  new MillraceError(
    'invalidRequest',
    `The step '${id}' cannot be edited: only results of tools and answers of the model can. ${instead}`,
  );
