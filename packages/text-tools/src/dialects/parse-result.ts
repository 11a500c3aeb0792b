import { isSameJson, type Repair } from 'millrace/values';

export interface ParsedToolCall {
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
}

interface Problem {
  readonly what: string;
  readonly tool?: string;
}

export interface Reading {
  readonly calls: readonly ParsedToolCall[];
  readonly repairs: readonly Repair[];
  readonly thought?: string;
  readonly answer?: string;
  readonly problem?: Problem;
  /** Whether it may be data of an answer: it only names a tool among other keys. */
  readonly isData?: boolean;
  /** Whether it has only keys of the protocol, and is neither an action nor an answer. */
  readonly isProtocol?: boolean;
}

export const emptyReading: Reading = { calls: [], repairs: [] };

export const unreadable = (what: string, tool?: string): Reading => ({
  ...emptyReading,
  problem: { what, ...(tool === undefined ? {} : { tool }) },
});

export const joinReadings = (readings: readonly Reading[]): Reading => {
  const problem = readings.find((reading) => reading.problem !== undefined)?.problem;
  const answers = new Set(readings.flatMap(({ answer }) => answer ?? []));
  const thoughts = readings.flatMap(({ thought }) => thought ?? []);
  const [answer, other] = answers;
  if (other !== undefined) return unreadable('It has two different answers.');
  return {
    calls: readings.flatMap(({ calls }) => calls),
    repairs: readings.flatMap(({ repairs }) => repairs),
    ...(thoughts.length === 0 ? {} : { thought: thoughts.join('\n\n') }),
    ...(answer === undefined ? {} : { answer }),
    ...(problem === undefined ? {} : { problem }),
    ...(readings.some(({ isData }) => isData) ? { isData: true } : {}),
  };
};

export const repairedFrom = (before: string, after: string, reading: Reading): Reading =>
  reading.problem === undefined
    ? { ...reading, repairs: [{ before, after }, ...reading.repairs] }
    : reading;

export interface Fault extends Problem {
  readonly text: string;
}

export interface ParseResult {
  readonly calls: ParsedToolCall[];
  readonly repairs: Repair[];
  /** The first unreadable action, without a readable one before it. */
  fault: Fault | undefined;
  skipped: number;
  conflict: string | undefined;
  /** Text of its own follows an action: another action after it may replace the first. */
  hasRemark: boolean;
  /** The tool of a runnable action within prose: the prose is not the answer. */
  mentionedTool: string | undefined;
  answer: string[] | undefined;
  readonly prose: string[];
  hasThought: boolean;
  /** Unmarked prose precedes the first action label: all of it may be the answer. */
  hasPreamble: boolean;
}

export const createParseResult = (): ParseResult => ({
  calls: [],
  repairs: [],
  fault: undefined,
  skipped: 0,
  conflict: undefined,
  hasRemark: false,
  mentionedTool: undefined,
  answer: undefined,
  prose: [],
  hasThought: false,
  hasPreamble: false,
});

/** Resets everything except that there was output, which turned out to be a thought. */
export const resetToThought = (result: ParseResult): void => {
  Object.assign(result, createParseResult(), { hasThought: true });
};

export const actionInText =
  'It has an action within other text, so the action may be an example. Write only the action, or your answer in its own form.';

const replacedAction =
  'It has several different actions, so it is unclear which one you mean. Write the one that you mean, and nothing after it.';

/** Adds the calls of an action. After text of its own, an action that differs may replace those before it. */
export const addCalls = (result: ParseResult, calls: readonly ParsedToolCall[]): void => {
  const isSame = (call: ParsedToolCall): boolean =>
    result.calls.some((it) => it.name === call.name && isSameJson(it.input, call.input));
  if (result.hasRemark && !calls.every(isSame)) result.conflict ??= replacedAction;
  result.calls.push(...calls);
};

export const hasToolCall = ({ calls, fault }: ParseResult): boolean =>
  calls.length > 0 || fault !== undefined;

export const addFault = (result: ParseResult, problem: Problem, text: string): void => {
  if (result.calls.length === 0) {
    result.fault ??= { ...problem, text };
    return;
  }
  result.skipped += 1;
  if (result.calls.some(({ name }) => name === problem.tool)) result.conflict ??= replacedAction;
};

export const invalidate = (result: ParseResult, { calls, answer }: Reading, text: string): void => {
  const what =
    'There is text after the end of the JSON: write one object, and escape quotes within strings.';
  result.calls.splice(result.calls.length - calls.length, calls.length);
  if (calls.length > 0) addFault(result, { what, tool: calls[0]?.name ?? '' }, text);
  else if (answer !== undefined) result.conflict ??= what;
};
