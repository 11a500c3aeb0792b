import { node } from './run.mjs';
import { setUp } from './set-up.mjs';

await setUp();

const flags = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning'];
const { code } = await node([...flags, 'node_modules/jest/bin/jest.js', ...process.argv.slice(2)]);
process.exit(code);
