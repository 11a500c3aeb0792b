import { node } from './run.mjs';
import { setUp } from './set-up.mjs';

await setUp();

const jest = async (...args) => {
  const flags = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning'];
  const { code } = await node([...flags, 'node_modules/jest/bin/jest.js', ...args]);
  return code;
};

// They start databases, and kill processes: beside others they would take their time from them.
const heavy = ['packages/store/', 'packages/crash-suite/'];
const asked = process.argv.slice(2);
const codes =
  asked.length > 0
    ? [await jest(...asked)]
    : [
        await jest('--testPathIgnorePatterns', '/node_modules/', ...heavy),
        await jest('--runInBand', '--testPathPatterns', ...heavy),
      ];
process.exit(Math.max(...codes));
