import { node } from './run.mjs';
import { isSetUp, requireNode, setUp } from './set-up.mjs';

requireNode();
const command = ['packages/cli/dist/bundle/bin.js', ...process.argv.slice(2)];
let isReady = false;

// In a process of its own the command gets each Ctrl-C once. This one may get it twice: from the
// terminal, and from npm where its shell hands the process over to us. That process starts while
// this one looks whether there is something to install or to build.
let { code } = await node(['--import', './scripts/set-up/gate.mjs', ...command], {
  opens: () => (isReady = isSetUp('command')),
});
if (!isReady) {
  await setUp('command');
  ({ code } = await node(command));
}
process.exit(code);
