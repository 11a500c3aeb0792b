import { commandNames, unknownCommand } from './command-line/help.js';
import { columnsIn, wrapUsage } from './command-line/help-layout.js';
import { type Parsed, parseArguments, type Unsure } from './command-line/parse-arguments.js';
import type { Environment } from './environment.js';
import { wrongUsage } from './exit-codes.js';
import { flush, isBrokenPipe, type Output, watchOutput } from './terminal/output.js';
import { createTheme } from './presentation/theme.js';

/** Runs the command in an environment. Resolves to its exit code when all output is written. */
export const main = (environment: Environment): Promise<number> => {
  const { argv, stdout, stderr } = environment;
  const parsed = parseArguments(argv, {
    writeOut: (text) => stdout.write(text),
    writeErr: (text) => stderr.write(text),
    columns: columnsIn(stdout),
    errorColumns: columnsIn(stderr),
  });
  return perform(environment, parsed);
};

/** The same for arguments that are parsed already. */
export const perform = async (
  environment: Environment,
  given: Parsed | Unsure,
): Promise<number> => {
  const { stderr, stdout } = environment;
  const output = watchOutput(stdout);
  watchOutput(stderr);
  if (given.status !== 'unsure') return performParsed(environment, given, output);
  const { nearMatches } = await import('millrace/values');
  const [meant] = nearMatches(given.word, commandNames, 1);
  if (meant === undefined) return performParsed(environment, given.otherwise(), output);
  stderr.write(wrapUsage(unknownCommand(given.word, meant), columnsIn(stderr)));
  return wrongUsage;
};

const performParsed = async (
  environment: Environment,
  parsed: Parsed,
  output: Output,
): Promise<number> => {
  const { env, platform, stdout, stderr } = environment;
  if (parsed.status === 'done') return parsed.code;
  const { given } = parsed;
  const look = { env, platform, color: given.color };
  const theme = createTheme({ ...look, output: stdout });
  const errorTheme = createTheme({ ...look, output: stderr });
  const debug = (env['DEBUG'] ?? '').split(',').includes('millrace');
  try {
    const { run } = await import('./run.js');
    const code = await run({ given, environment, theme, errorTheme, output, debug });
    await flush(output);
    return code;
  } catch (error) {
    if (isBrokenPipe(error)) return 0;
    const { describeError } = await import('./presentation/describe-error.js');
    stderr.write(`${describeError(error, errorTheme, debug)}\n`);
    return 1;
  }
};
