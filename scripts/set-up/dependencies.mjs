import { readJson, readJsonIfWhole } from '../workspaces.mjs';

/**
 * Whether node_modules holds what the lock file asks for. The last thing that npm writes there is a
 * record of what it installed: an interrupted install leaves none, and one by hand counts too.
 */
export function areInstalled(root) {
  const wanted = readJson(root, 'package-lock.json').packages;
  const installed = readJsonIfWhole(root, 'node_modules/.package-lock.json')?.packages;
  return (
    installed !== undefined &&
    Object.keys(installed).every((path) => path in wanted) &&
    Object.keys(wanted).every((path) => path === '' || isSame(wanted[path], installed[path]))
  );
}

// Optional packages are often for another platform and then not installed.
const isSame = (wanted, installed) =>
  installed === undefined
    ? wanted.optional === true
    : wanted.version === installed.version && wanted.integrity === installed.integrity;
