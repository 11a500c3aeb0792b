import type { Conversation, Observation } from './conversation.js';
import { fillArguments, type Input } from './fill-arguments.js';
import type { Parameter } from './parameter.js';
import { type Part, partsOf } from './parts.js';
import { type Phrase, readPhrase } from './phrase.js';
import { valueIn } from './results.js';
import { type Choice, chooseTool, mostTools, type ToolReading } from './choose-tool.js';

/** One tool call. */
export interface Call {
  readonly name: string;
  readonly input: Input;
}

/** The plan for a part of a question. */
export type Step = { readonly phrase: Phrase } & (
  | { readonly status: 'call'; readonly call: Call; readonly tool: ToolReading }
  | { readonly status: 'missing'; readonly tool: ToolReading; readonly parameter: Parameter }
  /** It waits for a result, or needs one that cannot be had, or depends on a condition, or no tool fits. */
  | { readonly status: 'waiting' | 'blocked' | 'conditional' | 'unfit' }
);

/** The results of a turn, by `callKey`. */
export type Results = ReadonlyMap<string, Observation>;

/** The steps for a question, the results that there are, and the calls that are still to be made. */
export interface Plan {
  readonly steps: readonly Step[];
  readonly results: Results;
  readonly calls: readonly Call[];
  /** A missing parameter that was asked for without success. */
  readonly inVain: Parameter | undefined;
}

/** Plans a question, as far as the results allow. No call that has a result is made again. */
export const plan = (conversation: Conversation, tools: readonly ToolReading[]): Plan => {
  const { rounds, mayCallTools } = conversation;
  const [text, inVain] = withAnswers(conversation, tools);
  const parts = partsOf(text, tools);
  const earlier = conversation.earlier.flatMap((turn) => turn.rounds.flat()).at(-1);
  const stepsFor = (results: Results) =>
    parts.reduce<readonly Step[]>(
      (before, part) => [...before, ...stepsOf(part, referenceFor(before, results, earlier))],
      [],
    );
  const results = rounds.reduce<Results>((before, round) => {
    const calls = callsOf(stepsFor(before), before);
    return new Map([...before, ...resultsOf(calls, round)]);
  }, new Map());
  const steps = stepsFor(results);
  // Results of other calls must not make it repeat its own for ever.
  const isStuck = rounds.length > steps.length * 2;
  const calls = mayCallTools && !isStuck ? callsOf(steps, results) : [];
  return { steps, results, calls, inVain };
};

/** The calls of a plan that have no result yet, each once. */
const callsOf = (steps: readonly Step[], results: Results): readonly Call[] => {
  const calls = steps.flatMap((step) => (step.status === 'call' ? [step.call] : []));
  const byKey = new Map(calls.map((call) => [callKey(call), call]));
  return [...byKey].flatMap(([key, call]) => (results.has(key) ? [] : [call]));
};

/** The results of a round, by the calls that were planned for it: an interceptor may have edited those that were made. */
const resultsOf = (
  planned: readonly Call[],
  round: readonly Observation[],
): readonly (readonly [string, Observation])[] => {
  const isComplete = planned.length === round.length;
  const edited = planned.flatMap((call, at) => {
    const result = isComplete ? round[at] : undefined;
    return result?.name === call.name ? [[callKey(call), result] as const] : [];
  });
  return [...edited, ...round.map((it) => [callKey(it), it] as const)];
};

/** Names a call: the same for the same tool and arguments, in any order. */
export const callKey = ({ name, input }: Call): string =>
  `${name} ${JSON.stringify(Object.entries(input).toSorted(([a], [b]) => (a < b ? -1 : 1)))}`;

/** The call that a request forces: of the tool that fits best, or of the first whose arguments are there. */
export const forcedCall = (question: string, tools: readonly ToolReading[]): readonly Call[] => {
  const phrase = readPhrase(question);
  const best = chooseTool(phrase, tools)?.tool;
  const calls = [best ?? [], tools.slice(0, mostTools)].flat().flatMap((tool) => {
    const filling = fillArguments(tool.parameters, phrase, { ...tool, isForced: true });
    const inputs = filling.missing.length === 0 && !filling.refers ? filling.inputs : [];
    return inputs.map((input) => ({ name: tool.name, input }));
  });
  return calls.slice(0, 1);
};

/** A question, after the one before if that lacked an argument, unless it asks for a tool; and what is still missing. */
const withAnswers = (
  { question, earlier }: Pick<Conversation, 'question' | 'earlier'>,
  tools: readonly ToolReading[],
): readonly [text: string, inVain?: Parameter | undefined] => {
  const last = earlier.at(-1);
  const phrase = readPhrase(question);
  if (last === undefined || last.rounds.length > 0 || phrase.content.length > 8) return [question];
  const [before, inVain] = withAnswers({ ...last, earlier: earlier.slice(0, -1) }, tools);
  const missing = inVain === undefined ? missingIn(before, tools) : undefined;
  if (missing === undefined || chooseTool(phrase, tools) !== undefined) return [question];
  const text = `${before.replace(/[\s.?!]{1,20}$/u, '')}, ${question}`;
  return [text, missingIn(text, tools) === missing ? missing : undefined];
};

const missingIn = (text: string, tools: readonly ToolReading[]): Parameter | undefined =>
  partsOf(text, tools).flatMap(({ choice }) => choice?.filling.missing ?? [])[0];

/** The referent of `it`: text, a pending result, or nothing. */
type Reference = 'open' | 'none' | { readonly text: string };

const stepsOf = ({ phrase, choice, ...part }: Part, reference: Reference): readonly Step[] => {
  if (part.isConditional) return [{ status: 'conditional', phrase }];
  if (choice === undefined) return [{ status: 'unfit', phrase }];
  const { tool, filling } = choice;
  const mustWait = part.follows && reference === 'open';
  if (!filling.refers && !mustWait) return stepsOfChoice(choice, phrase);
  if (reference === 'open') return [{ status: 'waiting', phrase }];
  if (reference === 'none') return [{ status: 'blocked', phrase }];
  const context = { ...tool, reference: reference.text };
  return stepsOfChoice({ tool, filling: fillArguments(tool.parameters, phrase, context) }, phrase);
};

const stepsOfChoice = ({ tool, filling }: Choice, phrase: Phrase): readonly Step[] => {
  const [parameter] = filling.missing;
  if (parameter !== undefined) return [{ status: 'missing', phrase, tool, parameter }];
  const calls = filling.inputs.map((input) => ({ name: tool.name, input }));
  return calls.map((call) => ({ status: 'call', phrase, tool, call }));
};

/** The result of the step before, or else the last one of an earlier turn. */
const referenceFor = (
  before: readonly Step[],
  results: Results,
  earlier: Observation | undefined,
): Reference => {
  const last = before.findLast(({ status }) => status !== 'unfit' && status !== 'conditional');
  if (last?.status === 'waiting') return 'open';
  if (last !== undefined && last.status !== 'call') return 'none';
  const result = last === undefined ? earlier : results.get(callKey(last.call));
  if (result === undefined) return last === undefined ? 'none' : 'open';
  const text = result.isError ? '' : valueIn(result.text);
  return text === '' ? 'none' : { text };
};
