import { npm } from '../run.mjs';
import { areInstalled } from '../set-up/dependencies.mjs';

// The .npmrc of the root does not reach these folders. Angular asks for a newer Node than it needs here.
// Peers come from the root: two copies of rxjs would have different types.
const flags = [
  '--ignore-scripts',
  '--no-engine-strict',
  '--legacy-peer-deps',
  '--include=dev',
  '--include=optional',
  '--loglevel=error',
  '--no-audit',
  '--no-fund',
];

/** Installs a folder as its lock file says, unless it is already, and resolves to what went wrong. */
export async function install(folder) {
  if (areInstalled(folder)) return undefined;
  const { code, output } = await npm(['ci', '--prefix', folder, ...flags], { quiet: true });
  return code === 0 ? undefined : `npm ci failed: ${output.trim()}`;
}
