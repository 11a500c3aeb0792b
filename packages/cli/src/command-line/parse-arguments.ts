import { CommanderError } from 'commander';
import type { Arguments } from './arguments.js';
import { describeProgram, version } from './describe-program.js';
import { commandNames } from './help.js';
import { helpFor, wrapUsage } from './help-layout.js';
import type { Options } from './to-arguments.js';

/** The arguments of a command to run, or an exit code if the output is complete, as for `--help`. */
export type Parsed =
  | { readonly status: 'run'; readonly given: Arguments }
  | { readonly status: 'done'; readonly code: 0 | 2 };

/** A word that may be a misspelled command; otherwise, the arguments are those of a question. */
export interface Unsure {
  readonly status: 'unsure';
  readonly word: string;
  readonly otherwise: () => Parsed;
}

/** Where to write the help, the version and usage errors. */
export interface ParseOutput {
  readonly writeOut: (text: string) => void;
  readonly writeErr: (text: string) => void;
  /** The width of the terminal; undefined for another output. */
  readonly columns?: number | undefined;
  /** The same for errors. */
  readonly errorColumns?: number | undefined;
}

export const parseArguments = (argv: readonly string[], output: ParseOutput): Parsed | Unsure => {
  const word = wordOf(argv);
  const otherwise = (): Parsed => parsed(argv, output);
  return word === undefined ? otherwise() : { status: 'unsure', word, otherwise };
};

/** The word in the place of a command, if the arguments after it could be those of one. */
const wordOf = (argv: readonly string[]): string | undefined => {
  const [word = '', ...rest] = argv.slice(argv.findIndex((it) => !beforeCommand.test(it)));
  const isWord = /^[a-z]{3,}$/.test(word) && ![...commandNames, 'help', 'version'].includes(word);
  return isWord && !rest.includes('--') && rest.every((it) => ofCommand.test(it))
    ? word
    : undefined;
};

/** Arguments before the name of a command: options without a value, and the word `help`. */
const beforeCommand = /^(?:-q|--quiet|--json|--no-color|--no-store|help)$/;

/** Arguments after the name of a command: an option, an id, a path, a number, or an action of `flow`. */
const ofCommand = /^(?:-.*|\S*[\d./]\S*|run|check|picture|last)$/;

const parsed = (argv: readonly string[], given: ParseOutput): Parsed => {
  const output: ParseOutput = {
    ...given,
    writeErr: (text) => given.writeErr(wrapUsage(text, given.errorColumns)),
  };
  const taken: Arguments[] = [];
  const program = describeProgram(
    (command) => command.exitOverride().configureOutput(output).configureHelp(helpFor(output)),
    (one) => taken.push(one),
    mayNameCommand(argv),
  );
  try {
    program.parse(argv, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return { status: 'done', code: error.exitCode === 0 ? 0 : 2 };
  }
  if (program.opts<Options>().v === true) {
    output.writeOut(`${version()}\n`);
    return { status: 'done', code: 0 };
  }
  const [run] = taken;
  return run === undefined ? { status: 'done', code: 0 } : { status: 'run', given: run };
};

/** Words after `--` are always a question. */
const mayNameCommand = (argv: readonly string[]): boolean => {
  const end = argv.indexOf('--');
  return end === -1 || argv.slice(0, end).some((word) => commandNames.includes(word));
};
