import { node } from '../run.mjs';

/** Runs Jest with the test files that `chosen` names: a kind, a layer, or all. */
export function jest(args, { kind, layer } = {}, options) {
  const names = { MILLRACE_KIND: kind?.name, MILLRACE_LAYER: layer };
  for (const [name, value] of Object.entries(names)) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
  const flags = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning'];
  const alone = kind?.alone ? ['--runInBand'] : [];
  return node([...flags, 'node_modules/jest/bin/jest.js', ...alone, ...args], options);
}
