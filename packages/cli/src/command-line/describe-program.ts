import { readFileSync } from 'node:fs';
import { Argument, Command, Option } from 'commander';
import type { Arguments, FlowArguments } from './arguments.js';
import { notesIn } from './help-layout.js';
import {
  commandHint,
  commandNames,
  devtoolsHelp,
  evalHelp,
  flowCheckHelp,
  flowHelp,
  flowPictureHelp,
  flowRunHelp,
  forkHelp,
  helpHint,
  mcpHelp,
  programHelp,
  replayHelp,
  resumeHelp,
  runsHelp,
  serveHelp,
} from './help.js';
import {
  fraction,
  notBlank,
  toAnswers,
  toEdits,
  toPort,
  toSpeed,
  wholeNumber,
} from './option-values.js';
import { type Options, optionsOf, toAnswer, toAsk, toFlow, toPrint } from './to-arguments.js';

/** Receives the parsed arguments. */
export type Accept = (given: Arguments) => void;

/** Configures a command before subcommands are added, which inherit the configuration. */
export type SetUp = (program: Command) => Command;

const notes =
  (text: string) =>
  ({ command }: { readonly command: Command }): string =>
    notesIn(text, command);

/** Describes the command line: the question, and with `withCommands` the commands. */
export const describeProgram = (setUp: SetUp, accept: Accept, withCommands: boolean): Command => {
  const program = withAskOptions(setUp(new Command('npx @millrace/cli')), accept)
    .description('Asks an agent, and shows how it reasons, calls tools and answers.')
    .version(version(), '-V, --version', 'print the version')
    // Many commands use -v for the version.
    .addOption(new Option('-v').hideHelp())
    .addHelpText('after', notes(programHelp))
    .helpOption('-h, --help', 'print this help')
    .helpCommand(false)
    .enablePositionalOptions()
    .showHelpAfterError(helpHint);
  return withCommands ? addCommands(program, accept) : program;
};

const addCommands = (program: Command, accept: Accept): Command => {
  const add: Add = (name, about, help) =>
    program
      .command(name)
      .description(about)
      .addHelpText('after', notes(help))
      .showHelpAfterError(commandHint(name))
      .allowExcessArguments(false);
  addWords(program, accept);
  withAskOptions(
    add('ask', 'ask a question, even one that starts with the name of a command', ''),
    accept,
  );
  addInit(add, accept);
  addRuns(add, accept);
  addReplay(add, accept);
  addResume(add, accept);
  addFork(add, accept);
  addMcp(add, accept);
  addServe(add, accept);
  addDevtools(add, accept);
  addFlow(add, accept);
  addEval(add, accept);
  return program;
};

/** Adds a command to the program. */
type Add = (name: string, about: string, help: string) => Command;

/** `npx @millrace/cli help` and `npx @millrace/cli version`. */
const addWords = (program: Command, accept: Accept): void => {
  /** A word that acts as an option on its own, and starts a question with other words. */
  const addWordOption = (word: string, act: (rest: readonly string[]) => boolean): void => {
    const command = program.command(word, { hidden: true }).helpOption(false);
    withAskOptions(command, accept, (words) => (act(words) ? undefined : [word, ...words]));
  };
  addWordOption('help', ([name, ...more]) => {
    const shown = name === undefined ? program : commandNamed(program, name);
    if (shown === undefined || more.length > 0) return false;
    // Its options are those of the package create-millrace, which prints them.
    if (name === 'init') accept({ command: 'init', color: true, argv: ['--help'] });
    else shown.outputHelp();
    return true;
  });
  addWordOption('version', (rest) => {
    if (rest.length === 0) program.setOptionValue('v', true);
    return rest.length === 0;
  });
};

const addInit = (add: Add, accept: Accept): void => {
  add('init', 'write a project with an agent, a tool and a test', '')
    .argument('[folder]', 'where to write it; options: npx @millrace/cli init --help')
    .helpOption(false)
    .allowUnknownOption()
    .allowExcessArguments()
    .passThroughOptions()
    .action((_folder: unknown, _options: unknown, { args, parent }: Command) => {
      accept({ command: 'init', color: parent?.opts<Options>().color !== false, argv: args });
    });
};

const addRuns = (add: Add, accept: Accept): void => {
  const runs = add('runs', 'list the runs, newest first, or show one of them', runsHelp)
    .argument('[id]', 'the run to show: its output, marble diagram and steps', notBlank)
    .option('--limit <number>', 'list this many (default: 20)', wholeNumber(1))
    .addOption(new Option('--all', 'list all').conflicts('limit'));
  withStoreOption(
    withPrintOptions(runs, 'print the ids only', 'print each run as a line of JSON'),
    recorded,
  ).action((run: string | undefined, _options: unknown, command: Command) => {
    const { limit = 20, all } = optionsOf(command);
    accept({
      command: 'runs',
      run: run ?? '',
      limit: all === true ? Infinity : limit,
      ...toPrint(command),
    });
  });
};

const addReplay = (add: Add, accept: Accept): void => {
  const replay = add('replay', 'play a run back', replayHelp)
    .argument('<id>', 'the run', notBlank)
    .option('--speed <number>', 'playback speed, such as 4; "max" plays without pauses', toSpeed)
    .addOption(new Option('--follow', 'follow the run while it is running').conflicts('speed'));
  withStoreOption(withPrintOptions(replay), recorded).action(
    (run: string, _options: unknown, command: Command) => {
      const { speed = 1, follow } = optionsOf(command);
      accept({ command: 'replay', run, speed, follow: follow === true, ...toPrint(command) });
    },
  );
};

const addResume = (add: Add, accept: Accept): void => {
  const resume = add('resume', 'resume a run that stopped or failed', resumeHelp).argument(
    '<id>',
    'the run',
    notBlank,
  );
  withAnswerOptions(resume).action((run: string, _options: unknown, command: Command) =>
    accept({ command: 'resume', run, ...toAnswer(command) }),
  );
};

const addFork = (add: Add, accept: Accept): void => {
  const fork = add('fork', 'start a new run from a step of another run', forkHelp)
    .argument('<id>', 'the run', notBlank)
    .option('--at <step>', 'the first step to repeat', notBlank)
    .addOption(
      new Option('--question <text>', 'ask this question instead, from the start')
        .argParser(notBlank)
        .conflicts(['at', 'edit']),
    )
    .option(
      '--edit <step=text>',
      'replace the result of a tool or the answer of the model (repeatable)',
      toEdits,
    );
  withAnswerOptions(fork).action((run: string, _options: unknown, command: Command) => {
    const { at = '', question = '', edit: edits = {} } = optionsOf(command);
    if (at === '' && question === '') command.error(forkNeeds, { exitCode: 2 });
    accept({ command: 'fork', run, at, question, edits, ...toAnswer(command) });
  });
};

const addMcp = (add: Add, accept: Accept): void => {
  add('mcp', 'serve the tools to an MCP client, such as Claude Desktop', mcpHelp)
    .option('--agent', 'serve the agent as well, as the tool ask_millrace')
    .option('--directory <path>', 'read files in this directory (default: here)', notBlank)
    .addOption(
      new Option(
        '--http [port]',
        'listen on 127.0.0.1 (default: a free port) instead of stdin',
      ).argParser(toPort),
    )
    .option('--model <name>', 'model of the agent (default: MILLRACE_MODEL, or a small one)')
    .option('--max-iterations <number>', 'maximum number of reasoning steps', wholeNumber(1))
    .option('--no-color', 'print without colour')
    .action((_options: unknown, command: Command) => {
      const given = optionsOf(command);
      const { agent, directory = '', http, color, model = '', maxIterations } = given;
      accept({
        command: 'mcp',
        agent: agent === true,
        directory,
        http: http === true ? 0 : http,
        ...{ color, model, maxIterations },
      });
    });
};

const addServe = (add: Add, accept: Accept): void => {
  const serve = add('serve', 'serve the assistant to chat clients over HTTP', serveHelp)
    .option(
      '--port <number>',
      'listen on this port of 127.0.0.1 (default: 3000; 0: a free one)',
      toPort,
    )
    .option('--model <name>', 'model of the agent (default: MILLRACE_MODEL, or a small one)')
    .option('--max-iterations <number>', 'maximum number of reasoning steps', wholeNumber(1))
    .option('--no-color', 'print without colour');
  withStoreOption(withPricesOption(serve))
    .option('--no-store', 'keep conversations in memory only')
    .option('--no-page', 'leave out the chat page at /')
    .option('--devtools', 'open the devtools on another port: live marbles and breakpoints')
    .action((_options: unknown, command: Command) => {
      const given = optionsOf(command);
      const { port = 3_000, color, model = '', maxIterations, store, prices = '' } = given;
      accept({
        ...{ command: 'serve', port, color, model, maxIterations, store, prices },
        ...{ page: given.page !== false, devtools: given.devtools === true },
      });
    });
};

const addDevtools = (add: Add, accept: Accept): void => {
  const devtools = add('devtools', 'show runs as marble diagrams in a browser', devtoolsHelp)
    .option(
      '--port <number>',
      'listen on this port of 127.0.0.1 (default: 4983, or a free one)',
      toPort,
    )
    .option('--model <name>', 'model of forks (default: MILLRACE_MODEL, or a small one)')
    .option('--no-color', 'print without colour');
  withStoreOption(devtools, recorded).action((_options: unknown, command: Command) => {
    const { port, color, model = '', store } = optionsOf(command);
    accept({ command: 'devtools', port, color, model, store });
  });
};

const addFlow = (add: Add, accept: Accept): void => {
  const flow = add('flow', 'run, check or draw an agent of a JSON document', flowHelp);
  const addAction = (action: FlowArguments['action'], about: string, help: string): Command =>
    flow
      .command(action)
      .description(about)
      .addHelpText('after', notes(help))
      .showHelpAfterError(`(for more information: npx @millrace/cli flow ${action} --help)`)
      .addArgument(new Argument('<file>', 'the document').argParser(notBlank))
      .addOption(
        new Option('--from <format>', 'the format of the document')
          .choices(['millrace', 'ragflow'])
          .default('millrace'),
      )
      .action((file: string, ...given: readonly unknown[]) => {
        const command = given.at(-1);
        if (command instanceof Command) {
          accept(toFlow(action, file, given.length > 2 ? given[0] : [], command));
        }
      });
  const withRun = (command: Command): Command =>
    withPricesOption(command)
      .argument('[input...]', 'the input of the flow; "-" reads it from stdin')
      .option('--live', 'show the components while they run')
      .option('--answer <component=text>', 'the answer of a person (repeatable)', toAnswers)
      .option('--documents <directory>', 'search the Markdown files there', notBlank)
      .option('--model <name>', 'model of the provider (default: MILLRACE_MODEL, or a small one)');
  withPrintOptions(withRun(addAction('run', 'run a flow', flowRunHelp)));
  addAction('check', 'list the problems of a flow', flowCheckHelp)
    .option('--json', 'print the problems as JSON')
    .option('--no-color', 'print without colour');
  withRun(addAction('picture', 'print a flow as a Mermaid diagram', flowPictureHelp)).option(
    '--no-color',
    'print without colour',
  );
};

const addEval = (add: Add, accept: Accept): void => {
  add('eval', 'evaluate an agent, and compare with a baseline', evalHelp)
    .argument('<files...>', 'modules that export an evaluation')
    .option('--update', 'write the baselines')
    .option(
      '--tolerance <number>',
      'how far scores and pass rates may fall (default: 0.05)',
      fraction,
    )
    .option(
      '--token-tolerance <number>',
      'by which part tokens may grow, such as 0.2 (default: any)',
      fraction,
    )
    .option('--json', 'print each case, the summary and the comparison as a line of JSON')
    .option('--no-color', 'print without colour')
    .action((files: readonly string[], _options: unknown, command: Command) => {
      const { update, tolerance, tokenTolerance, json, color } = optionsOf(command);
      accept({
        ...{ command: 'eval', files, update: update === true, tolerance, tokenTolerance },
        ...{ json: json === true, color },
      });
    });
};

const forkNeeds =
  'error: choose a step with --at <step> (to list them: npx @millrace/cli runs <id>), or use --question <text>';

const commandNamed = (program: Command, name: string): Command | undefined =>
  commandNames.includes(name) ? program.commands.find((it) => it.name() === name) : undefined;

/** `questionOf` returns the words of the question, or undefined if they are not a question. */
const withAskOptions = (
  command: Command,
  accept: Accept,
  questionOf: (words: readonly string[]) => readonly string[] | undefined = (words) => words,
): Command =>
  withAnswerOptions(
    command
      .argument('[question...]', 'what to ask; "-" reads it from stdin')
      .option('--session <name>', 'continue this conversation, or start it', notBlank),
  )
    .option('--no-store', 'record nothing')
    .action((words: readonly string[], _options: unknown, it: Command) => {
      const question = questionOf(words);
      if (question !== undefined) accept(toAsk(question, it));
    });

const withPrintOptions = (
  command: Command,
  quiet = 'print the answer only',
  json = 'print each event as a line of JSON',
): Command =>
  command
    .option('-q, --quiet', quiet)
    .addOption(new Option('--json', json).conflicts('quiet'))
    .option('--no-color', 'print without colour');

const withStoreOption = (command: Command, what = 'where to record runs'): Command =>
  command.option('--store <place>', `${what}: a .db file, a directory, or postgres://…`, notBlank);

const recorded = 'the store of the runs';

const withPricesOption = (command: Command): Command =>
  command.option(
    '--prices <file>',
    'show costs, by a JSON file (default: MILLRACE_PRICES)',
    notBlank,
  );

const withAnswerOptions = (command: Command): Command =>
  withStoreOption(
    withPricesOption(
      withPrintOptions(command)
        .option('--max-iterations <number>', 'maximum number of reasoning steps', wholeNumber(1))
        .option(
          '--model <name>',
          'model of the provider (default: MILLRACE_MODEL, or a small one)',
        ),
    ),
  ).option(
    '--keep-days <number>',
    'remove runs that ended this many days ago (default: 30)',
    wholeNumber(0),
  );

export const version = (): string => {
  const manifest: unknown = JSON.parse(
    readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
  );
  return String(Reflect.get(Object(manifest), 'version'));
};
