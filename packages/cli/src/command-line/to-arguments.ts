import type { Command } from 'commander';
import type {
  AnswerArguments,
  AskArguments,
  FlowArguments,
  PrintArguments,
  StoreArguments,
} from './arguments.js';

/** The options of all commands. */
export interface Options {
  readonly color: boolean;
  readonly json?: boolean;
  readonly quiet?: boolean;
  readonly store?: string | false;
  readonly maxIterations?: number;
  readonly model?: string;
  readonly prices?: string;
  readonly keepDays?: number;
  readonly session?: string;
  readonly limit?: number;
  readonly all?: boolean;
  readonly speed?: number;
  readonly follow?: boolean;
  readonly at?: string;
  readonly question?: string;
  readonly edit?: Readonly<Record<string, string>>;
  readonly agent?: boolean;
  readonly page?: boolean;
  readonly devtools?: boolean;
  readonly directory?: string;
  readonly http?: number | true;
  readonly port?: number;
  readonly from?: 'millrace' | 'ragflow';
  readonly live?: boolean;
  readonly answer?: Readonly<Record<string, string>>;
  readonly documents?: string;
  readonly update?: boolean;
  readonly tolerance?: number;
  readonly tokenTolerance?: number;
  readonly v?: boolean;
}

/** The options of a command, including those before its name. Options after the name take precedence. */
export const optionsOf = (command: Command): Options => {
  // A command that only has commands of its own has no options.
  const own = command.opts<Partial<Options>>();
  const before = command.parent === null ? { color: true } : optionsOf(command.parent);
  return { ...before, ...own, color: before.color && own.color !== false };
};

export const toPrint = (command: Command): PrintArguments & StoreArguments => {
  const { color, json, quiet, store } = optionsOf(command);
  return { color, json: json === true, quiet: quiet === true, store };
};

export const toAnswer = (command: Command): AnswerArguments => {
  const { maxIterations, model = '', prices = '', keepDays } = optionsOf(command);
  return { ...toPrint(command), maxIterations, model, prices, keepDays };
};

export const toAsk = (words: readonly string[], command: Command): AskArguments => {
  if (words.length > 0 && words.join('').trim() === '') {
    command.error(emptyQuestion, { exitCode: 2 });
  }
  const { session = '' } = optionsOf(command);
  return { command: 'ask', question: words.join(' ').trim(), session, ...toAnswer(command) };
};

const emptyQuestion =
  'error: the question is empty: write one, as in npx @millrace/cli "2 + 2", or omit the argument';

/** `words` are the input of a flow that runs. */
export const toFlow = (
  action: FlowArguments['action'],
  file: string,
  words: unknown,
  command: Command,
): FlowArguments => {
  const { from = 'millrace', live, answer, documents = '', ...rest } = optionsOf(command);
  const { model = '', prices = '' } = rest;
  const question = Array.isArray(words) ? words.join(' ').trim() : '';
  return {
    ...{ command: 'flow', action, file, from, question, live: live === true },
    ...{ answers: answer ?? {}, documents, model, prices, ...toPrint(command) },
  };
};
