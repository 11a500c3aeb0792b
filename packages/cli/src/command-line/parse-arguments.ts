import { CommanderError } from 'commander';
import type { Arguments } from './arguments.js';
import { describeProgram, version } from './describe-program.js';
import { commandNames } from './help.js';
import type { Options } from './to-arguments.js';

/** The arguments of a command to run, or an exit code if the output is complete, as for `--help`. */
export type Parsed =
  | { readonly status: 'run'; readonly given: Arguments }
  | { readonly status: 'done'; readonly code: 0 | 2 };

/** Where to write the help, the version and usage errors. */
export interface ParseOutput {
  readonly writeOut: (text: string) => void;
  readonly writeErr: (text: string) => void;
}

export const parseArguments = (argv: readonly string[], output: ParseOutput): Parsed => {
  const taken: Arguments[] = [];
  const program = describeProgram(
    (command) => command.exitOverride().configureOutput(output),
    (given) => taken.push(given),
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
  const [given] = taken;
  return given === undefined ? { status: 'done', code: 0 } : { status: 'run', given };
};

/** Words after `--` are always a question. */
const mayNameCommand = (argv: readonly string[]): boolean => {
  const end = argv.indexOf('--');
  return end === -1 || argv.slice(0, end).some((word) => commandNames.includes(word));
};
