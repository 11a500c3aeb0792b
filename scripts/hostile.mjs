import { node } from './run.mjs';
import { setUp } from './set-up.mjs';

await setUp();

const { code } = await node(['conformance/hostile-suite/dist/main.js', ...process.argv.slice(2)]);
process.exit(code);
