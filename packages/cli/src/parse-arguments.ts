import { readFileSync } from 'node:fs';
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';

/** What the command is asked to do. */
export interface Arguments {
  /** Empty where none was given; `-` is the standard input. */
  readonly question: string;
  readonly color: boolean;
  readonly json: boolean;
  readonly quiet: boolean;
  readonly maxIterations: number | undefined;
  /** Empty where none was given. */
  readonly model: string;
}

/** Arguments, or the exit code of a command that has said all there is to say. */
export type Parsed =
  | { readonly status: 'run'; readonly given: Arguments }
  | { readonly status: 'done'; readonly code: 0 | 2 };

/** Where help, the version and complaints are written to. */
export interface ParseOutput {
  readonly writeOut: (text: string) => void;
  readonly writeErr: (text: string) => void;
}

/** Reads the arguments of a command line. */
export const parseArguments = (argv: readonly string[], output: ParseOutput): Parsed => {
  const command = describeCommand().exitOverride().configureOutput(output);
  try {
    command.parse(argv, { from: 'user' });
    if (isBlank(command.args)) {
      command.error(
        'error: the question is empty: write one, as in millrace "2 + 2", or leave it out',
        { exitCode: 2 },
      );
    }
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return { status: 'done', code: error.exitCode === 0 ? 0 : 2 };
  }
  const { color, json, quiet, maxIterations, model = '', v } = command.opts<Options>();
  if (v === true) {
    output.writeOut(`${version()}\n`);
    return { status: 'done', code: 0 };
  }
  const question = command.args.join(' ').trim();
  return {
    status: 'run',
    given: { question, color, json: json === true, quiet: quiet === true, maxIterations, model },
  };
};

const isBlank = (args: readonly string[]): boolean =>
  args.length > 0 && args.join('').trim() === '';

interface Options {
  readonly color: boolean;
  readonly json?: boolean;
  readonly quiet?: boolean;
  readonly maxIterations?: number;
  readonly model?: string;
  readonly v?: boolean;
}

/** What a complaint ends with. */
export const helpHint = '(millrace --help tells more)';

const describeCommand = (): Command =>
  new Command('millrace')
    .description('Asks an agent, and shows how it reasons, uses its tools and answers.')
    .argument('[question...]', 'what to ask; "-" reads it from stdin')
    .option('-q, --quiet', 'print the answer only')
    .addOption(new Option('--json', 'print each event as a line of JSON').conflicts('quiet'))
    .option('--max-iterations <number>', 'let the agent reason this often at most', toWholeNumber)
    .option('--model <name>', "name the vendor's model (default: MILLRACE_MODEL, or a small one)")
    .option('--no-color', 'print without colour')
    .version(version(), '-V, --version', 'print the version')
    // So many commands have it that it is meant, too.
    .addOption(new Option('-v').hideHelp())
    .helpOption('-h, --help', 'print this help')
    .addHelpText('after', afterHelp)
    .showHelpAfterError(helpHint);

const afterHelp = `
Without a question it chats in a terminal, but not with --json, which needs one; in a pipe it
waits for the question on stdin, and where that is empty asks one of its own. Ctrl-C ends the
answer politely, a second one at once.

It asks OpenAI or Anthropic where OPENAI_API_KEY or ANTHROPIC_API_KEY is set, and any endpoint that
speaks OpenAI's chat completions, such as Ollama's, where OPENAI_BASE_URL is; else the embedded model.

Exit codes: 0 answered (an "I cannot" is an answer too), 1 failed, 2 wrong usage, 130 interrupted.

  $ millrace "What is 17.5% of 2349, and what time is it in Tokyo?"
  $ echo "How do interrupts work?" | millrace --quiet
  $ millrace --json "2 + 2" | jq -r .type`;

const toWholeNumber = (text: string): number => {
  const value = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(value) && value >= 1) return value;
  throw new InvalidArgumentError('It must be a whole number of at least 1.');
};

const version = (): string => {
  const manifest: unknown = JSON.parse(
    readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
  );
  return String(Reflect.get(Object(manifest), 'version'));
};
