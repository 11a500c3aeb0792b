import { scenarios } from '../scenarios/scenarios.js';
import { ownAdapters } from './adapters.js';

/** What `--help` prints. */
export const help = `npm run bench -- [options]

Measures what adapters cost on the same work against a model on loopback, and prints ratios to a loop by hand.

  --only a,c          these scenarios; default: all
  --adapters x,y      these adapters, and the floors that they are measured against; default: those of this repository
  --peers             the installed peers, too (\`npm run bench:peers\` installs them)
  --rounds n          how often each is measured, in a process of its own; default: 5
  --small             a quick look: little is done, and the numbers say nothing
  --node 24           what runs the processes that are measured: 20, 22, 24 or 26 (\`npm run bench:peers\` installs
                      22 and 24; the one that runs the bench is always there), or a path; repeatable: tables for each
  --json FILE         writes everything that was measured to a file
  --help

\`npm run bench -- serve --help\`: the same for the chat server.

Scenarios:
${scenarios.map(({ letter, about }) => `  ${letter}  ${about}`).join('\n')}

Adapters: ${ownAdapters.map(({ name }) => name).join(', ')}

It exits with 1 when something has failed, and with 2 when it is asked for what there is not.`;
