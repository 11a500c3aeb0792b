import { readFileSync } from 'node:fs';
import { Command, Option } from 'commander';
import { identity } from 'rxjs';
import type { Arguments } from './arguments.js';
import {
  commandHint,
  commandNames,
  forkHelp,
  helpHint,
  programHelp,
  replayHelp,
  resumeHelp,
  runsHelp,
} from './help.js';
import { notBlank, toEdits, toSpeed, wholeNumber } from './option-values.js';
import { optionsOf, toAnswer, toAsk, toPrint } from './to-arguments.js';

/** What hears of the arguments that were read. */
export type Take = (given: Arguments) => void;

/** How a command is set up before anything is added to it, so that what is added inherits it. */
export type SetUp = (program: Command) => Command;

/** Describes the command line: a question, and where it may be one, the commands. */
export const describeProgram = (setUp: SetUp, take: Take, withCommands: boolean): Command => {
  const program = asking(setUp(new Command('millrace')), take)
    .description('Asks an agent, and shows how it reasons, uses its tools and answers.')
    .version(version(), '-V, --version', 'print the version')
    // So many commands have it that it is meant, too.
    .addOption(new Option('-v').hideHelp())
    .addHelpText('after', programHelp)
    .helpOption('-h, --help', 'print this help')
    .helpCommand(false)
    .enablePositionalOptions()
    .showHelpAfterError(helpHint);
  return withCommands ? addCommands(program, take) : program;
};

const addCommands = (program: Command, take: Take): Command => {
  const add = (name: string, about: string, help: string): Command =>
    program
      .command(name)
      .description(about)
      .addHelpText('after', help)
      .showHelpAfterError(commandHint(name))
      .allowExcessArguments(false);

  /** A word that means an option of the program where it stands alone. With others, it begins a question. */
  const meaning = (word: string, act: (rest: readonly string[]) => boolean): void => {
    const command = program.command(word, { hidden: true }).helpOption(false);
    asking(command, take, (words) => (act(words) ? undefined : [word, ...words]));
  };
  meaning('help', ([name, ...more]) => {
    const shown = name === undefined ? program : commandNamed(program, name);
    if (shown === undefined || more.length > 0) return false;
    shown.outputHelp();
    return true;
  });
  meaning('version', (rest) => {
    if (rest.length === 0) program.setOptionValue('v', true);
    return rest.length === 0;
  });
  asking(add('ask', 'ask a question, also one whose first word is a command', ''), take);

  const runs = add('runs', 'list the runs, the newest first, or show one of them', runsHelp)
    .argument('[id]', 'the run to show: a picture, what was printed, its steps', notBlank)
    .option('--limit <number>', 'list this many (default: 20)', wholeNumber(1))
    .addOption(new Option('--all', 'list all').conflicts('limit'));
  stored(printed(runs, 'print the ids only', 'print each run as a line of JSON')).action(
    (run: string | undefined, _options: unknown, command: Command) => {
      const { limit = 20, all } = optionsOf(command);
      take({
        command: 'runs',
        run: run ?? '',
        limit: all === true ? Infinity : limit,
        ...toPrint(command),
      });
    },
  );

  const replay = add('replay', 'show a run again, as it was', replayHelp)
    .argument('<id>', 'the run', notBlank)
    .option('--speed <number>', 'play it this many times as fast, or at once with "max"', toSpeed)
    .addOption(new Option('--follow', 'go on with what a run that runs does').conflicts('speed'));
  stored(printed(replay)).action((run: string, _options: unknown, command: Command) => {
    const { speed = 1, follow } = optionsOf(command);
    take({ command: 'replay', run, speed, follow: follow === true, ...toPrint(command) });
  });

  const resume = add(
    'resume',
    'go on with a run that was broken off, or failed',
    resumeHelp,
  ).argument('<id>', 'the run', notBlank);
  answered(resume).action((run: string, _options: unknown, command: Command) =>
    take({ command: 'resume', run, ...toAnswer(command) }),
  );

  const fork = add('fork', 'make a new run of a part of another, and go on with it', forkHelp)
    .argument('<id>', 'the run', notBlank)
    .option('--at <step>', 'the first step that is done anew', notBlank)
    .addOption(
      new Option('--question <text>', 'ask this instead, from the beginning')
        .argParser(notBlank)
        .conflicts(['at', 'edit']),
    )
    .option(
      '--edit <step=text>',
      'let a tool have given this, or the model have said it (repeatable)',
      toEdits,
    );
  answered(fork).action((run: string, _options: unknown, command: Command) => {
    const { at = '', question = '', edit: edits = {} } = optionsOf(command);
    if (at === '' && question === '') command.error(forkNeeds, { exitCode: 2 });
    take({ command: 'fork', run, at, question, edits, ...toAnswer(command) });
  });
  return program;
};

const forkNeeds =
  'error: say where: --at <step>, one of those that millrace runs <id> lists, or --question <text>';

/** A command that the help lists. */
const commandNamed = (program: Command, name: string): Command | undefined =>
  commandNames.includes(name) ? program.commands.find((it) => it.name() === name) : undefined;

/** `questionOf` says what the words ask, if they ask something. */
const asking = (
  command: Command,
  take: Take,
  questionOf: (words: readonly string[]) => readonly string[] | undefined = identity,
): Command =>
  answered(
    command
      .argument('[question...]', 'what to ask; "-" reads it from stdin')
      .option('--session <name>', 'go on with this conversation, or begin it', notBlank),
  )
    .option('--no-store', 'write nothing down')
    .action((words: readonly string[], _options: unknown, it: Command) => {
      const question = questionOf(words);
      if (question !== undefined) take(toAsk(question, it));
    });

const printed = (
  command: Command,
  quiet = 'print the answer only',
  json = 'print each event as a line of JSON',
): Command =>
  command
    .option('-q, --quiet', quiet)
    .addOption(new Option('--json', json).conflicts('quiet'))
    .option('--no-color', 'print without colour');

const stored = (command: Command): Command =>
  command.option(
    '--store <place>',
    'where runs are written down: a directory, or postgres://…',
    notBlank,
  );

const answered = (command: Command): Command =>
  stored(
    printed(command)
      .option(
        '--max-iterations <number>',
        'let the agent reason this often at most',
        wholeNumber(1),
      )
      .option(
        '--model <name>',
        "name the vendor's model (default: MILLRACE_MODEL, or a small one)",
      ),
  ).option(
    '--keep-days <number>',
    'remove runs that have ended this long ago (default: 30)',
    wholeNumber(0),
  );

/** The version of the program. */
export const version = (): string => {
  const manifest: unknown = JSON.parse(
    readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
  );
  return String(Reflect.get(Object(manifest), 'version'));
};
