import { execFileSync } from 'node:child_process';
import { at } from '../mock/paths.js';

/** The bytes that a package of this repository has where it is installed: those that npm would pack, unpacked. */
export const packedBytes = (folder: string): number => {
  const args = ['pack', '--dry-run', '--json', '--ignore-scripts', '--workspaces=false'];
  const cli = process.env['npm_execpath'];
  const isOurs = cli?.endsWith('npm-cli.js') === true;
  const text = execFileSync(
    isOurs ? process.execPath : 'npm',
    [...(isOurs ? [cli] : []), ...args],
    {
      cwd: folder,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    },
  );
  const packed: unknown = JSON.parse(text);
  const bytes = at(Array.isArray(packed) ? packed[0] : undefined, 'unpackedSize');
  if (typeof bytes !== 'number') throw new Error(`npm does not say how big ${folder} is.`);
  return bytes;
};
