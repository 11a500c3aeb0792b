import type { Command } from 'commander';
import type { AnswerArguments, AskArguments, PrintArguments, StoreArguments } from './arguments.js';

/** The options that commands have. */
export interface Options {
  readonly color: boolean;
  readonly json?: boolean;
  readonly quiet?: boolean;
  readonly store?: string | false;
  readonly maxIterations?: number;
  readonly model?: string;
  readonly keepDays?: number;
  readonly session?: string;
  readonly limit?: number;
  readonly all?: boolean;
  readonly speed?: number;
  readonly follow?: boolean;
  readonly at?: string;
  readonly question?: string;
  readonly edit?: Readonly<Record<string, string>>;
  readonly v?: boolean;
}

/** The options of a command. Those before its name count, too, and what both say is said last by its own. */
export const optionsOf = (command: Command): Options => {
  const own = command.opts<Options>();
  if (command.parent === null) return own;
  const before = command.parent.opts<Options>();
  return { ...before, ...own, color: before.color && own.color };
};

/** Reads how a command prints, and where its runs are. */
export const toPrint = (command: Command): PrintArguments & StoreArguments => {
  const { color, json, quiet, store } = optionsOf(command);
  return { color, json: json === true, quiet: quiet === true, store };
};

/** Reads how an agent answers. */
export const toAnswer = (command: Command): AnswerArguments => {
  const { maxIterations, model = '', keepDays } = optionsOf(command);
  return { ...toPrint(command), maxIterations, model, keepDays };
};

/** Reads a question; `words` are its arguments. */
export const toAsk = (words: readonly string[], command: Command): AskArguments => {
  if (words.length > 0 && words.join('').trim() === '') {
    command.error(emptyQuestion, { exitCode: 2 });
  }
  const { session = '' } = optionsOf(command);
  return { command: 'ask', question: words.join(' ').trim(), session, ...toAnswer(command) };
};

const emptyQuestion =
  'error: the question is empty: write one, as in millrace "2 + 2", or leave it out';
