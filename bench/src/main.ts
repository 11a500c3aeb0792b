import { constants } from 'node:os';
import { writeChart } from './chart/write-chart.js';
import { installedPeers } from './runner/adapters.js';
import { killChildren } from './runner/children.js';
import { help } from './runner/help.js';
import { readCommand } from './runner/read-command.js';
import { runCommand } from './runner/run-command.js';
import { UsageError } from './runner/usage-error.js';
import { runServe } from './serve/serve-command.js';

process.once('exit', killChildren);
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, () => process.exit(128 + constants.signals[signal]));
}

const [first, ...rest] = process.argv.slice(2);
const isChart = first === 'chart';
const isServe = first === 'serve';
try {
  if (isChart) console.log(writeChart(rest));
  else if (isServe) await runServe(rest);
  else {
    const command = readCommand(process.argv.slice(2), installedPeers());
    if (command.isHelp) console.log(help);
    else process.exitCode = await runCommand(command);
  }
} catch (thrown) {
  if (!(thrown instanceof UsageError)) throw thrown;
  const script = isChart ? 'bench:chart' : isServe ? 'bench -- serve' : 'bench';
  console.error(`${thrown.message}\n\n\`npm run ${script} -- --help\` says what there is.`);
  process.exitCode = 2;
}
