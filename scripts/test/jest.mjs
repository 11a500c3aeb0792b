import { node } from '../run.mjs';

/** Jest and Node only warn of what a test has left behind. */
const warning = /^.*(?:did not exit|failed to exit|Warning:|Force exiting).*$/m;

/** Runs Jest with the test files that `chosen` names: a kind, a layer, or all. A warning of Jest or Node is a failure. */
export async function jest(args, { kind, layer } = {}, { quiet = false } = {}) {
  const names = { MILLRACE_KIND: kind?.name, MILLRACE_LAYER: layer };
  for (const [name, value] of Object.entries(names)) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
  const flags = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning'];
  const options = [
    ...(kind?.alone && !args.some((arg) => /^(-w|--maxWorkers)/.test(arg)) ? ['--runInBand'] : []),
    ...(process.stderr.isTTY && !quiet ? ['--colors'] : []),
  ];
  const jestFile = 'node_modules/jest/bin/jest.js';
  const result = await node([...flags, jestFile, ...options, ...args], { quiet, watched: !quiet });
  const [warned] = warning.exec(result.output) ?? [];
  if (warned === undefined || result.code !== 0) return result;
  console.error(`The tests passed, but with a warning: ${warned.trim()}`);
  return { ...result, code: 1 };
}
