// Runs the program of a private package, once everything is built: `node scripts/suite.mjs conformance/flow-suite --small`.
import { node } from './run.mjs';
import { setUp } from './set-up.mjs';

await setUp();

const [folder, ...args] = process.argv.slice(2);
const { code } = await node([`${folder}/dist/main.js`, ...args]);
process.exit(code);
