import { type MillraceError, misuse } from '../errors.js';
import { kindOf, type StepKind } from './steps.js';
import { toolStepOf } from './stored-steps.js';

/** Refuses an edit of a step that is not of its kind: it would change nothing, and nobody would hear of it. */
export const assertOfKind = (
  { id, value }: { readonly id: string; readonly value: unknown },
  kinds: readonly StepKind[] | undefined,
): void => {
  const kind = kindOf(id, value);
  if (kinds !== undefined && !kinds.includes(kind)) throw ofOtherKind(id, kind, kinds);
};

const words: Readonly<Record<StepKind, string>> = {
  call: 'the beginning of the call',
  prepare: 'the input as it was prepared',
  open: 'the history of the call',
  model: 'an answer of the model',
  intent: 'the decision to run a tool',
  tool: 'the result of a tool',
  reply: 'the reply of a call',
  other: 'a step of another kind',
};

const functions: Readonly<Partial<Record<StepKind, string>>> = {
  call: 'otherQuestion(text)',
  prepare: 'otherQuestion(text)',
  model: 'otherAnswer(text)',
  tool: 'otherResult(returned)',
};

const ofOtherKind = (id: string, kind: StepKind, kinds: readonly StepKind[]): MillraceError => {
  const wanted = kinds.map((it) => words[it]).join(' or ');
  const fitting = functions[kind];
  const run = toolStepOf(id);
  const fix =
    run !== undefined
      ? `What the tool has given is '${run}'`
      : fitting !== undefined
        ? `Edit it with ${fitting}`
        : 'Edit it with a function of your own: (step) => value';
  return misuse(
    `fork$(): the edit of the step '${id}' is one of ${wanted}, and that step is ${words[kind]}. ${fix}.`,
  );
};
