import type { Arguments } from './command-line/arguments.js';
import { exitCodes } from './exit-codes.js';
import { runChat } from './run-chat.js';
import { runQuestion } from './run-question.js';
import type { Setting } from './setting.js';

/** Runs a command, and resolves to the exit code. Loads the code of other commands than `ask` lazily. */
export const run = async (setting: Setting): Promise<number> => {
  const { given } = setting;
  switch (given.command) {
    case 'ask': {
      const asking = { ...setting, given };
      return isChat(asking) ? runChat(asking) : runQuestion(asking);
    }
    case 'init': {
      const { init } = await import('create-millrace');
      return init({ ...setting.environment, command: 'npx @millrace/cli init', argv: given.argv });
    }
    case 'runs': {
      const { showRuns } = await import('./runs/show-runs.js');
      return showRuns({ ...setting, given });
    }
    case 'replay': {
      const { replayRun } = await import('./runs/replay-run.js');
      return exitCodes[await replayRun({ ...setting, given })];
    }
    case 'resume': {
      const { resumeRun } = await import('./runs/resume-run.js');
      return exitCodes[await resumeRun({ ...setting, given })];
    }
    case 'fork': {
      const { forkRun } = await import('./runs/fork-run.js');
      return exitCodes[await forkRun({ ...setting, given })];
    }
    case 'serve': {
      const { runServe } = await import('./run-serve.js');
      return exitCodes[await runServe({ ...setting, given })];
    }
    case 'devtools': {
      const { runDevtools } = await import('./run-devtools.js');
      return exitCodes[await runDevtools({ ...setting, given })];
    }
    case 'mcp': {
      const { runMcp } = await import('./run-mcp.js');
      return exitCodes[await runMcp({ ...setting, given })];
    }
    case 'flow': {
      const { flow } = await import('./flow/flow.js');
      return flow({ ...setting, given });
    }
    case 'eval': {
      const { runEval } = await import('./evals/run-eval.js');
      return runEval({ ...setting, given });
    }
  }
};

const isChat = ({
  given,
  environment: { stdin, stdout },
}: Setting<Extract<Arguments, { command: 'ask' }>>): boolean =>
  given.question === '' && !given.json && stdin.isTTY === true && stdout.isTTY === true;
