import type { Choice } from './choose-tool.js';
import type { Input } from './fill-arguments.js';
import type { Observation } from './read-conversation.js';
import type { Slot } from './read-slots.js';
import type { ToolReading } from './read-tools.js';

/** What is to be done about a part of a question. */
export type Step =
  /** A tool is used; another reading of the words is there in case the first fails. */
  | {
      readonly status: 'call';
      readonly text: string;
      readonly tool: ToolReading;
      readonly readings: readonly Input[];
    }
  /** It needs a result that is not there yet, or that could not be got. */
  | { readonly status: 'waiting' | 'blocked'; readonly text: string }
  /** A parameter has to be asked for. */
  | {
      readonly status: 'missing';
      readonly text: string;
      readonly tool: ToolReading;
      readonly slot: Slot;
      readonly input: Input;
    }
  /** It asks about the result of the step before. */
  | { readonly status: 'aside'; readonly text: string }
  /** It gives a value to go on from: `start with 100`. */
  | { readonly status: 'given'; readonly text: string; readonly value: string }
  /** It is left, or answered only in part, for a reason that the answer gives. */
  | { readonly status: 'refused' | 'remark'; readonly text: string; readonly reason: string }
  | { readonly status: 'condition' | 'unfit'; readonly text: string };

/** A step that uses a tool. */
export type CallStep = Extract<Step, { status: 'call' }>;
/** A step that asks for a parameter. */
export type MissingStep = Extract<Step, { status: 'missing' }>;

/** Makes steps of a choice: a call for each of its inputs, or one that asks for what is missing. */
export const choiceSteps = (text: string, { tool, filling }: Choice): readonly Step[] => {
  const [slot] = filling.missing;
  const [[input = {}] = []] = filling.calls;
  if (slot !== undefined) return [{ status: 'missing', text, tool, slot, input }];
  return filling.calls.map((readings) => ({ status: 'call', text, tool, readings }));
};

/** Where a call stands: still to be made with this input, or answered. */
export type Outcome =
  | { readonly status: 'open'; readonly input: Input }
  | {
      readonly status: 'done' | 'failed';
      readonly input: Input;
      readonly observation: Observation;
    };

/** Tells where a call stands. One that failed is made once more where its words have another reading. */
export const outcomeOf = (
  { tool, readings }: CallStep,
  answers: ReadonlyMap<string, Observation>,
): Outcome => {
  const outcomes = readings.map((input): Outcome => {
    const observation = answers.get(callKey(tool.name, input));
    if (observation === undefined) return { status: 'open', input };
    return { status: observation.isError ? 'failed' : 'done', input, observation };
  });
  const settled = outcomes.find(({ status }) => status !== 'failed') ?? outcomes[0];
  return settled ?? { status: 'open', input: {} };
};
/** Names a call: the same for the same tool and arguments, in whatever order they are written. */
export const callKey = (name: string, input: unknown): string => `${name} ${canonical(input)}`;

const canonical = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${canonical(item)}`).join()}}`;
};
