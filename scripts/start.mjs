import { node } from './run.mjs';
import { setUp } from './set-up.mjs';

await setUp();

// In a process of its own the command gets each Ctrl-C once. This one may get it twice: from the
// terminal, and from npm where its shell hands the process over to us.
const { code } = await node(['packages/cli/dist/bundle/bin.js', ...process.argv.slice(2)]);
process.exit(code);
